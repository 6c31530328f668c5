package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// RestoreOptions configure a restore.
type RestoreOptions struct {
	// Store are the options that the store is made with.
	Store lineage.Options
	// Progress is that of ImportOptions.
	Progress func(done, total int64)
}

// Restore makes a store of a bundle in a directory that is new or empty, and verifies
// every byte of it. A directory that holds anything is refused with
// backend.ErrExists. Until the store is complete there is nothing under its name.
func Restore(ctx context.Context, r io.Reader, dir string, o RestoreOptions) (ImportReport, error) {
	report, err := restore(ctx, r, dir, o)
	if err != nil {
		return report, fmt.Errorf("restore to %s: %w", dir, err)
	}
	return report, nil
}

func restore(ctx context.Context, r io.Reader, dir string, o RestoreOptions) (report ImportReport, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return report, err
	}
	if err := requireFree(dir); err != nil {
		return report, err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return report, err
	}
	partial, err := os.MkdirTemp(parent, filepath.Base(dir)+".partial-*")
	if err != nil {
		return report, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if report, err = fillStore(ctx, r, partial, o); err != nil {
		return report, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return report, err // something came there meanwhile
	}
	if err := os.Rename(partial, dir); err != nil {
		return report, err
	}
	return report, syncDir(parent)
}

func requireFree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the directory is not empty: %w", backend.ErrExists)
}

// fillStore makes a store in an empty directory and verifies it.
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

// syncDir makes a new name in a directory survive power loss.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
