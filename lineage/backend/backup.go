package backend

import (
	"context"
	"iter"
)

// Impaired is implemented by engines that can open a damaged store for reading.
type Impaired interface {
	// Damage returns the reason why the store cannot be read to its end, or nil. It matches ErrCorrupt.
	Damage() error
}

// Copier is implemented by engines whose store can be copied as a whole.
type Copier interface {
	// Backup writes a copy of the store, as of one durable commit, to a new or empty directory. The store can be used
	// meanwhile. The copy is a store itself. The directory is created only when the copy is complete.
	Backup(ctx context.Context, dir string, o BackupOptions) (BackupReport, error)
}

// CopySource is implemented by engines that yield a copy of their store, for another process to
// write.
type CopySource interface {
	// Copy yields a copy of the store, as of one durable commit: first the plan, then the bytes
	// of the files, one file after the other.
	Copy(ctx context.Context) iter.Seq2[CopyPart, error]
}

// CopyPart is a part of a copy: the plan, or bytes of a file, which are valid until the next
// part.
type CopyPart struct {
	Plan *CopyPlan
	// File is the index of the file in the plan.
	File  int
	Bytes []byte
}

// CopyPlan lists the files of a copy.
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
	// Progress, if not nil, is called with the number of bytes copied.
	Progress func(done, total int64)
}

// BackupReport is the result of a backup.
type BackupReport struct {
	// Commit is the last commit in the copy.
	Commit uint64 `json:"commits"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}
