package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// NewDir creates a directory with what fill puts into it. The directory is filled under another
// name, dir and ".partial-*", and renamed when its content is durable. An interruption leaves only
// that one. If dir exists and is not empty, the error matches taken.
func NewDir(dir string, taken error, fill func(partial string) error) (err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("the directory is not empty: %w", taken)
	}
	above := filepath.Dir(dir)
	if err := os.MkdirAll(above, dirMode); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(above, filepath.Base(dir)+".partial-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if err := fill(partial); err != nil {
		return err
	}
	if err := OS().SyncDir(partial); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // something came there meanwhile
	}
	if err := os.Rename(partial, dir); err != nil {
		return err
	}
	return OS().SyncDir(above)
}
