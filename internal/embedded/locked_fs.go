package embedded

import "github.com/lineage-store/lineage/internal/vfs"

// lockedFS is the file system of a locked directory. Once the directory is no longer at its path, it opens and changes
// nothing by name, and syncs fail: what is acknowledged as durable can be found.
type lockedFS struct {
	vfs.FS
	held func() error
}

func (f lockedFS) Open(name string) (vfs.File, error) {
	if err := f.held(); err != nil {
		return nil, err
	}
	return f.FS.Open(name)
}

func (f lockedFS) OpenRW(name string) (vfs.File, error) {
	if err := f.held(); err != nil {
		return nil, err
	}
	return f.locked(f.FS.OpenRW(name))
}

func (f lockedFS) Create(name string) (vfs.File, error) {
	if err := f.held(); err != nil {
		return nil, err
	}
	return f.locked(f.FS.Create(name))
}

func (f lockedFS) locked(opened vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	file := lockedFile{opened, f.held}
	if m, ok := opened.(vfs.Mapper); ok {
		return lockedMapper{file, m}, nil
	}
	return file, nil
}

func (f lockedFS) Remove(name string) error {
	if err := f.held(); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

func (f lockedFS) Rename(oldName, newName string) error {
	if err := f.held(); err != nil {
		return err
	}
	return f.FS.Rename(oldName, newName)
}

func (f lockedFS) MkdirAll(dir string) error {
	if err := f.held(); err != nil {
		return err
	}
	return f.FS.MkdirAll(dir)
}

// lockedFile is a file in a locked directory, open for writing.
type lockedFile struct {
	vfs.File
	held func() error
}

func (f lockedFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	return f.held()
}

// Truncate would cut what another process wrote that has locked the directory since.
func (f lockedFile) Truncate(size int64) error {
	if err := f.held(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

type lockedMapper struct {
	lockedFile
	vfs.Mapper
}
