package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// RestoreOptions configure a restore.
type RestoreOptions struct {
	// Store are the options of the new store.
	Store lineage.Options
	// Progress is that of ImportOptions.
	Progress func(done, total int64)
}

// Restore creates a store from a bundle, in a directory that does not exist or is empty, and
// verifies it. Another directory is refused with backend.ErrExists. The directory appears when the
// store is complete.
func Restore(ctx context.Context, r io.Reader, dir string, o RestoreOptions) (report ImportReport, err error) {
	err = vfs.NewDir(dir, backend.ErrExists, func(partial string) error {
		report, err = fillStore(ctx, r, partial, o)
		return err
	})
	if err != nil {
		return report, fmt.Errorf("restore to %s: %w", dir, err)
	}
	return report, nil
}

func fillStore(ctx context.Context, r io.Reader, dir string, o RestoreOptions) (report ImportReport, err error) {
	o.Store.ReadOnly, o.Store.MustExist = false, false
	store, err := lineage.Open(ctx, dir, o.Store)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if report, err = Import(ctx, store, r, ImportOptions{Progress: o.Progress}); err != nil {
		return report, err
	}
	for finding, err := range store.Verify(ctx, lineage.VerifyOptions{Deep: true}) {
		if err != nil {
			return report, err
		}
		return report, &backend.CorruptError{File: finding.File, Offset: finding.Offset, What: finding.String()}
	}
	return report, nil
}
