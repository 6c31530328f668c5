package vfs

import (
	"fmt"
	"os"
)

// OS returns the file system of the operating system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Open(name string) (File, error) {
	return openFile(name, os.O_RDONLY)
}

func (osFS) OpenRW(name string) (File, error) {
	return openFile(name, os.O_RDWR)
}

func (osFS) Create(name string) (File, error) {
	return openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (osFS) Remove(name string) error { return os.Remove(name) }

func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, dirMode) }

func (osFS) List(dir string) ([]string, error) {
	if err := CheckDir(dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (osFS) Stat(name string) (Info, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size()}, nil
}

func (osFS) SyncDir(dir string) error {
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// osFile implements File, with a cheaper Sync where the system has one.
type osFile struct{ f *os.File }

func openFile(name string, flag int) (File, error) {
	f, err := OpenFile(name, flag)
	if err != nil {
		return nil, err // not f: a nil *os.File in an osFile is not a nil File
	}
	return osFile{f}, nil
}

func (o osFile) ReadAt(p []byte, off int64) (int, error)  { return o.f.ReadAt(p, off) }
func (o osFile) WriteAt(p []byte, off int64) (int, error) { return o.f.WriteAt(p, off) }
func (o osFile) Close() error                             { return o.f.Close() }
func (o osFile) Sync() error                              { return syncData(o.f) }
func (o osFile) Truncate(size int64) error                { return o.f.Truncate(size) }

func (o osFile) Size() (int64, error) {
	info, err := o.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
