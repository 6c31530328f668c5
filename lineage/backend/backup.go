package backend

import (
	"context"
	"iter"
)

// Impaired is implemented by engines that open a store for reading in spite of damage.
type Impaired interface {
	// Damage returns what keeps the store from being read to its end, or nil. It
	// matches ErrCorrupt.
	Damage() error
}

// Copier is implemented by engines whose store can be copied as a whole.
type Copier interface {
	// Backup writes a copy of the store, as of one commit that is durable, into a
	// directory that is new or empty, while the store is read and written. The copy is
	// a store itself. Until it is complete there is nothing under that name.
	Backup(ctx context.Context, dir string, o BackupOptions) (BackupReport, error)
}

// CopySource is implemented by engines that yield a copy of their store, for another process to
// write.
type CopySource interface {
	// Copy yields a copy of the store, as of one commit that is durable: first what it consists
	// of, then the bytes of its files, one file after the other.
	Copy(ctx context.Context) iter.Seq2[CopyPart, error]
}

// CopyPart is a part of a copy: what it consists of, or bytes of a file, which the next part
// replaces.
type CopyPart struct {
	Plan *CopyPlan
	// File counts the files of the plan from 0.
	File  int
	Bytes []byte
}

// CopyPlan says what a copy consists of.
type CopyPlan struct {
	Store  [16]byte
	Commit uint64
	Files  []CopyFile
}

// CopyFile is a file of a copy.
type CopyFile struct {
	Name string
	Size int64
}

// BackupOptions configure a backup.
type BackupOptions struct {
	// Progress, when not nil, is called now and then with how many bytes are copied.
	Progress func(done, total int64)
}

// BackupReport says what was copied.
type BackupReport struct {
	// Commit is the number of the last commit of the copy.
	Commit uint64 `json:"commit"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}
