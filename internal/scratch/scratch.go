// Package scratch makes directories and files for temporary data that may be anybody's texts. They are for their owner only, in a
// directory of the user among the temporary files of the machine, and do not outlast their process for long: who makes one
// removes those whose processes ended without doing so. The directory of the user stays.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/internal/vfs"
)

// lockSuffix ends the name of the file beside a directory that is locked while the directory is in use. It is there before the
// directory and is removed after it, so that a process that has the lock has the directory.
const lockSuffix = ".lock"

// maxTaken is the number of names of the user's directory that other users may have taken, and of attempts to make a directory.
const maxTaken = 100

// Dir is a directory of this process.
type Dir struct {
	Path  string
	lock  *os.File
	alone bool // in a directory that has nothing else
}

// New creates a directory, and removes those that ended processes left behind, if it can.
func New() (*Dir, error) {
	for range maxTaken {
		home, alone, err := home()
		if err != nil {
			return nil, err
		}
		_ = clean(home) // housekeeping
		d, err := newIn(home)
		switch {
		case err == nil:
			d.alone = alone
			return d, nil
		case alone:
			err = errors.Join(err, os.RemoveAll(home))
		}
		if !errors.Is(err, errTaken) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("make a directory in %s: other processes keep removing it", os.TempDir())
}

// home returns the directory of this user, and creates it if it is missing. Another user may have taken a name, but where several
// users have temporary files, only the owner of a directory can rename or remove it. Where files have no owners, it is a directory
// for this call alone.
func home() (path string, alone bool, err error) {
	for n := range maxTaken {
		path = filepath.Join(os.TempDir(), fmt.Sprintf("lineage-scratch-%d-%d", os.Geteuid(), n))
		err := os.Mkdir(path, 0o700)
		switch {
		case err != nil && !errors.Is(err, fs.ErrExist):
			return "", false, err
		case isOwn(path):
			return path, false, nil
		case err == nil:
			_ = os.Remove(path) // so that its name does not count as taken
			path, err = os.MkdirTemp("", "lineage-scratch-*")
			return path, true, err
		}
	}
	return "", false, fmt.Errorf("make a directory in %s: its names belong to other users", os.TempDir())
}

// isOwn reports whether a path is a directory, and no link to one, of this user only.
var isOwn = func(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir() && own(info)
}

// errTaken is returned if another process mistook a new directory for an abandoned one, or removed that of the user.
var errTaken = errors.New("another process removed the directory")

// newIn creates a directory in that of the user.
func newIn(home string) (*Dir, error) {
	f, err := os.CreateTemp(home, "*"+lockSuffix) // mode 0600
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	return hold(f)
}

// hold locks the directory of a new lock file and creates it.
func hold(f *os.File) (*Dir, error) {
	err := vfs.TryLock(f, vfs.Exclusive)
	if errors.Is(err, vfs.ErrBusy) || err == nil && !same(f, f.Name()) {
		return nil, errors.Join(errTaken, f.Close())
	}
	d := &Dir{Path: directoryOf(f.Name()), lock: f}
	if err == nil {
		err = os.Mkdir(d.Path, 0o700)
	}
	if err != nil {
		return nil, errors.Join(err, d.release())
	}
	return d, nil
}

// directoryOf returns the directory of a lock file.
func directoryOf(lock string) string { return strings.TrimSuffix(lock, lockSuffix) }

// same reports whether a name refers to an open file.
func same(f *os.File, name string) bool {
	opened, err := f.Stat()
	named, nameErr := os.Lstat(name)
	return err == nil && nameErr == nil && os.SameFile(opened, named)
}

// removeAll is os.RemoveAll, also in tests.
var removeAll = os.RemoveAll

// Remove removes the directory and its contents, and then gives up the lock. What it cannot remove, the next process may.
func (d *Dir) Remove() error {
	if err := removeAll(d.Path); err != nil {
		return errors.Join(err, d.lock.Close())
	}
	return d.release()
}

// release removes the lock file of a directory that is not there.
func (d *Dir) release() error {
	removed := os.Remove(d.lock.Name()) == nil
	err := d.lock.Close()
	if !removed { // not every system removes an open file. If another process has it open now, that one removes it.
		_ = os.Remove(d.lock.Name())
	}
	if d.alone {
		err = errors.Join(err, os.Remove(filepath.Dir(d.Path)))
	}
	return err
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

// clean removes the directories in that of the user whose processes have ended.
func clean(home string) error {
	entries, err := os.ReadDir(home)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), lockSuffix) && e.Type().IsRegular() {
			err = errors.Join(err, reclaim(filepath.Join(home, e.Name())))
		}
	}
	return err
}

// reclaim removes the directory of a lock file, unless a process uses it.
func reclaim(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if vfs.TryLock(f, vfs.Exclusive) != nil || !same(f, name) {
		return f.Close()
	}
	return (&Dir{Path: directoryOf(name), lock: f}).Remove()
}
