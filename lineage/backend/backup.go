package backend

import "context"

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

// BackupOptions configure a backup.
type BackupOptions struct {
	// Progress, when not nil, is called now and then with how many bytes are copied.
	Progress func(done, total int64)
}

// BackupReport tells what was copied.
type BackupReport struct {
	// Commit is the number of the last commit of the copy.
	Commit uint64 `json:"commit"`
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
}
