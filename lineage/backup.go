package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

// BackupOptions configure a backup.
//
//	Progress func(done, total int64) // if not nil, called with the number of bytes copied
type BackupOptions = backend.BackupOptions

// RestoreOptions configure a restore.
//
//	Progress func(done, total int64) // if not nil, called with the work done, in bytes of the journal
type RestoreOptions = embedded.RestoreOptions

// Backup copies the store, as of one commit, into a new or empty directory. The store can be used meanwhile. The copy
// is a store with the same id. The directory appears when the copy is complete and durable. An interrupted backup
// leaves a directory with the suffix ".partial-" and a random part. The error matches errors.ErrUnsupported if the
// engine has no backups, and ErrCorrupt if the store is damaged.
func (s *Store) Backup(ctx context.Context, dir string, o BackupOptions) (backend.BackupReport, error) {
	engine, err := ability[backend.Copier](ctx, s)
	if err != nil {
		return backend.BackupReport{}, fmt.Errorf("backup: %w", err)
	}
	return engine.Backup(ctx, dir, o)
}

// Damage returns the reason why a store that was opened read-only cannot be read to its end, or nil. The error
// matches ErrCorrupt.
func (s *Store) Damage() error {
	engine, err := ability[backend.Impaired](context.Background(), s)
	if err != nil {
		return nil // this engine reads all or nothing
	}
	return engine.Damage()
}

// Restore copies a backup into a new or empty directory and verifies every byte. It returns ErrExists
// if the directory holds a store, and ErrCorrupt if the backup is damaged. A store that no process has
// open can be restored too, but without the backup's manifest it cannot be checked for completeness.
func Restore(ctx context.Context, from, dir string, o RestoreOptions) (backend.BackupReport, error) {
	return embedded.Restore(ctx, from, dir, o)
}
