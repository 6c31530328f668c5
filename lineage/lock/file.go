package lock

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
)

// lockFilePath returns the lock file of path. It resolves symbolic links in the directory, so that
// all names of the directory lead to the same lock.
func lockFilePath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(abs)+".lock"), nil
}

func openFile(path string, flag int) (f *os.File, err error) {
	err = retryTransient(func() error {
		f, err = vfs.OpenFile(path, flag)
		return err
	})
	return f, err
}

// sighting is the observed state of a lock file.
type sighting struct {
	data     []byte
	modified time.Time
	record   *holderRecord // nil if data is not a valid record
}

// readLockFile reads the lock file at path. It returns nil if there is none.
func readLockFile(path string) (*sighting, error) {
	f, err := openFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readFrom(f)
}

func readFrom(f *os.File) (*sighting, error) {
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, err
	}
	return &sighting{data: data, modified: stat.ModTime(), record: decodeRecord(data)}, nil
}

func (s *sighting) info() *Info {
	if s.record == nil {
		return &Info{Since: s.modified, Refreshed: s.modified}
	}
	return s.record.info()
}

// create writes r to a new lock file. If one exists, it returns fs.ErrExist.
//
// The record is first written to a draft, which is then linked, so that a lock file left by a crash
// always names the dead process. The next create removes a draft left by a crash; the guard ensures
// that no other process is using it.
func create(path string, r holderRecord) error {
	draft := path + ".new"
	if err := remove(draft); err != nil {
		return err
	}
	if err := writeNew(draft, r.encode()); err != nil {
		return err
	}
	err := os.Link(draft, path)
	_ = remove(draft)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system has no hard links.
	return writeNew(path, r.encode())
}

// writeNew creates a file exclusively, and removes it if writing fails.
func writeNew(path string, data []byte) error {
	f, err := openFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, remove(path))
	}
	return nil
}

// refreshFile refreshes the lock file if it still belongs to r, else it returns ErrLost, or
// fs.ErrNotExist if there is none.
//
// It writes to the file it has read, not to a new one: if a program that does not know the guard
// replaces the file meanwhile, only the removed file is written. A reader that sees a partial write
// sees a fresh file.
func refreshFile(path string, r holderRecord) error {
	f, err := openFile(path, os.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := readFrom(f)
	if err != nil {
		return err
	}
	if !s.isOf(r) {
		return ErrLost
	}
	data := r.encode()
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(data)))
}

// removeOwn removes the lock file if it still belongs to r, else it returns ErrLost.
func removeOwn(path string, r holderRecord) error {
	s, err := readLockFile(path)
	if err != nil {
		return err
	}
	if s == nil || !s.isOf(r) {
		return ErrLost
	}
	return remove(path)
}

func (s *sighting) isOf(r holderRecord) bool {
	return s.record != nil && s.record.Token == r.Token
}

// remove removes the lock file if it exists.
func remove(path string) error {
	err := retryTransient(func() error { return os.Remove(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// retryTransient repeats op while it fails because another process has the file open, which happens
// on Windows.
func retryTransient(op func() error) error {
	const tries, pause = 50, 2 * time.Millisecond
	err := op()
	for try := 1; try < tries && isTransient(err); try++ {
		time.Sleep(pause)
		err = op()
	}
	return err
}
