package crashfs

import (
	"io/fs"
	"slices"
)

// Names returns the names of all files, sorted and without a leading slash.
// Like the other methods that are not part of vfs.FS, it also works on a dead
// file system.
func (fsys *FS) Names() []string {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	var names []string
	fsys.root.walk("", func(name string, _ *file) { names = append(names, name) })
	slices.Sort(names)
	return names
}

// ReadFile returns a copy of a file's content as programs see it.
func (fsys *FS) ReadFile(name string) ([]byte, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	f, err := fsys.root.findFile(name)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return append([]byte{}, f.live...), nil
}

// WriteFile durably replaces the content of an existing file, ignoring all
// faults. Tests damage files with it.
func (fsys *FS) WriteFile(name string, content []byte) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	f, err := fsys.root.findFile(name)
	if err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	fsys.log = slices.DeleteFunc(fsys.log, func(c pendingChange) bool {
		return c.edit != nil && c.edit.file == f
	})
	f.live, f.durable = slices.Clone(content), slices.Clone(content)
	return nil
}

// UnsyncedOps returns the number of changes that are not durable, which is the
// number that [KeepPrefix] can choose from.
func (fsys *FS) UnsyncedOps() int {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return len(fsys.log)
}

// UnsyncedSizes returns the number of bytes that each of those changes wrote.
func (fsys *FS) UnsyncedSizes() []int {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	sizes := make([]int, len(fsys.log))
	for i, c := range fsys.log {
		if c.edit != nil {
			sizes[i] = len(c.edit.data)
		}
	}
	return sizes
}

// UnsyncedBytes returns the number of written bytes that are not durable.
func (fsys *FS) UnsyncedBytes() int64 {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	var n int64
	for _, c := range fsys.log {
		if c.edit != nil {
			n += int64(len(c.edit.data))
		}
	}
	return n
}

// Used returns the total size of all files, as [FS.SetCapacity] counts it.
func (fsys *FS) Used() int64 {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.used()
}

func (fsys *FS) used() int64 {
	var n int64
	fsys.root.walk("", func(_ string, f *file) { n += int64(len(f.live)) })
	return n
}
