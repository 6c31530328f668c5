package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

// BackupOptions configure a backup.
type BackupOptions = backend.BackupOptions

// RestoreOptions configure a restore.
type RestoreOptions = embedded.RestoreOptions

// Backup copies the store, as of one commit, into a directory that is new or empty,
// while it is read and written. The copy is a store itself, with the same id. Nothing
// is there under that name until the copy is complete and durable; what an interrupted
// backup leaves is named after the directory with ".partial-" behind. An engine that
// cannot is errors.ErrUnsupported, and a store that is damaged ErrCorrupt.
func (s *Store) Backup(ctx context.Context, dir string, o BackupOptions) (backend.BackupReport, error) {
	engine, ok := s.engine.(backend.Copier)
	if !ok {
		return backend.BackupReport{}, fmt.Errorf("backup: %w", errors.ErrUnsupported)
	}
	return engine.Backup(ctx, dir, o)
}

// Damage returns what keeps a store that was opened read-only from being read to its
// end, or nil: what it shows ends before that. It matches ErrCorrupt.
func (s *Store) Damage() error {
	if engine, ok := s.engine.(backend.Impaired); ok {
		return engine.Damage()
	}
	return nil
}

// Restore copies a backup into a directory that is new or empty, and verifies every
// byte of it. A store that is there already is refused with ErrExists, a backup
// that is not what was written with ErrCorrupt. A store that nobody has open can be
// restored too; it is not known then what it was.
func Restore(ctx context.Context, from, dir string, o RestoreOptions) (backend.BackupReport, error) {
	return embedded.Restore(ctx, from, dir, o)
}
