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

// lockFilePath returns the lock file of path, the same one by whatever name
// path's directory is reached.
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

// sighting is a lock file as it was seen.
type sighting struct {
	data     []byte
	modified time.Time
	record   *record // nil when data is not a record
}

// look reads the lock file at path and returns nil when there is none.
func look(path string) (*sighting, error) {
	var f *os.File
	err := patiently(func() (err error) {
		f, err = vfs.OpenFile(path, os.O_RDONLY)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return see(f)
}

func see(f *os.File) (*sighting, error) {
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, err
	}
	s := &sighting{data: data, modified: stat.ModTime()}
	if r, err := decodeRecord(data); err == nil {
		s.record = &r
	}
	return s, nil
}

func (s *sighting) info() *Info {
	if s.record == nil {
		return &Info{Since: s.modified, Refreshed: s.modified}
	}
	return s.record.info()
}

// create writes r to a lock file that must not exist; it returns fs.ErrExist if
// one does.
//
// The record is written to a draft first, and the draft linked to its place, so
// that a crash cannot leave a lock file that does not name its dead process. A
// draft that a crash has left goes with the next one; the guard keeps it from
// being somebody else's.
func create(path string, r record) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	draft := path + ".new"
	if err := remove(draft); err != nil {
		return err
	}
	if err := writeNew(draft, data); err != nil {
		return err
	}
	err = os.Link(draft, path)
	_ = remove(draft)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// This file system has no links.
	return writeNew(path, data)
}

// writeNew creates a file exclusively. It leaves none when it fails to write.
func writeNew(path string, data []byte) error {
	var f *os.File
	err := patiently(func() (err error) {
		f, err = vfs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		return err
	})
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, remove(path))
	}
	return nil
}

// restamp renews the lock file if it is still the one r was written to, and
// returns ErrLost otherwise.
//
// It writes into the file it read, not to a new one: should a program that does
// not know the guard replace the file meanwhile, only the removed one is
// written. A reader that sees half of the change sees a fresh file.
func restamp(path string, r record) error {
	data, err := r.encode()
	if err != nil {
		return err
	}
	var f *os.File
	err = patiently(func() (err error) {
		f, err = vfs.OpenFile(path, os.O_RDWR)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return ErrLost
	}
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := see(f)
	if err != nil {
		return err
	}
	if !s.isOf(r) {
		return ErrLost
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return err
	}
	if len(s.data) == len(data) {
		return nil
	}
	return f.Truncate(int64(len(data)))
}

// removeOwn removes the lock file if it is still the one r was written to, and
// returns ErrLost otherwise.
func removeOwn(path string, r record) error {
	s, err := look(path)
	if err != nil {
		return err
	}
	if s == nil || !s.isOf(r) {
		return ErrLost
	}
	return remove(path)
}

func (s *sighting) isOf(r record) bool {
	return s.record != nil && s.record.Token == r.Token
}

// remove removes the lock file; one that is gone already is fine.
func remove(path string) error {
	err := patiently(func() error { return os.Remove(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// patiently repeats op while it fails only because somebody else has the file
// open at this moment, which happens on Windows.
func patiently(op func() error) error {
	const tries, pause = 50, 2 * time.Millisecond
	err := op()
	for try := 1; try < tries && isTransient(err); try++ {
		time.Sleep(pause)
		err = op()
	}
	return err
}
