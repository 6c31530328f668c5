// Package scratch makes directories and files for temporary data that may be anybody's texts. They are among the temporary files of
// the machine, for their owner only, and do not outlast their process for long: who makes one removes those whose
// processes ended without doing so.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/vfs"
)

// pattern is the name of the directories. lockName is a file in each, which is locked while the directory is in use.
const (
	pattern  = "lineage-scratch-*"
	lockName = "lock"
)

// Dir is a directory of this process.
type Dir struct {
	Path string
	lock *os.File
}

// New creates a directory, and removes those that ended processes left behind, if it can.
func New() (*Dir, error) {
	_ = Clean() // housekeeping
	for range 100 {
		path, err := os.MkdirTemp("", pattern) // mode 0700
		if err != nil {
			return nil, err
		}
		d, err := hold(path)
		if err == nil {
			return d, nil
		}
		if !errors.Is(err, errTaken) {
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
	return nil, fmt.Errorf("make a directory in %s: other processes keep removing it", os.TempDir())
}

// errTaken is returned if another process mistook a new directory for an abandoned one.
var errTaken = errors.New("another process removed the directory")

// hold locks a new directory.
func hold(path string) (*Dir, error) {
	name := filepath.Join(path, lockName)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	if err = vfs.TryLock(f, false); errors.Is(err, vfs.ErrBusy) {
		err = errTaken
	}
	if err == nil && !same(f, name) {
		err = errTaken
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Dir{path, f}, nil
}

// same reports whether a name refers to an open file.
func same(f *os.File, name string) bool {
	is, err := f.Stat()
	named, nameErr := os.Lstat(name)
	return err == nil && nameErr == nil && os.SameFile(is, named)
}

// Remove removes the directory and its contents.
func (d *Dir) Remove() error {
	err := removeContents(d.Path)
	return errors.Join(err, d.lock.Close(), os.RemoveAll(d.Path)) // a locked file is removed last, and not everywhere
}

// File is a temporary file of this process, in a directory of its own.
type File struct {
	*os.File
	dir *Dir
}

// NewFile creates an empty file.
func NewFile() (*File, error) {
	d, err := New()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(d.Path, "data"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return &File{f, d}, nil
}

// Close closes and removes the file.
func (f *File) Close() error { return errors.Join(f.File.Close(), f.dir.Remove()) }

// Clean removes the directories of this user whose processes have ended.
func Clean() error {
	entries, err := os.ReadDir(os.TempDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if match, _ := filepath.Match(pattern, e.Name()); !match {
			continue
		}
		path := filepath.Join(os.TempDir(), e.Name())
		if info, statErr := os.Lstat(path); statErr != nil || !info.IsDir() || !own(info) {
			continue // gone, or not made by this package
		}
		err = errors.Join(err, reclaim(path))
	}
	return err
}

// reclaim removes a directory, unless a process uses it.
func reclaim(path string) error {
	name := filepath.Join(path, lockName)
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) { // it is new or almost removed, and so empty
		_ = os.Remove(path)
		return nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if vfs.TryLock(f, false) != nil || !same(f, name) {
		return f.Close()
	}
	return (&Dir{path, f}).Remove()
}

// removeContents removes everything but the lock, so that another process can finish an interrupted removal.
func removeContents(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != lockName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
		}
	}
	return err
}
