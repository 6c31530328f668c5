// Package memfs is a file system in memory.
package memfs

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/lineage-store/lineage/internal/vfs"
)

// FS is a file system in memory. Names are slash-separated; a leading slash is ignored. FS is
// safe for concurrent use.
type FS struct {
	mu sync.RWMutex
	// nodes maps complete names to files, and to nil for directories. The root is "".
	nodes map[string]*file
}

var _ vfs.FS = (*FS)(nil)

// New returns an empty file system.
func New() *FS { return &FS{nodes: map[string]*file{"": nil}} }

// clean returns the key of a file or directory in nodes.
func clean(name string) string {
	return strings.TrimPrefix(path.Join("/", filepath.ToSlash(name)), "/")
}

// parent returns the name of the directory of a file or directory.
func parent(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// Open implements [vfs.FS].
func (fsys *FS) Open(name string) (vfs.File, error) { return fsys.open(name, false) }

// OpenRW implements [vfs.FS].
func (fsys *FS) OpenRW(name string) (vfs.File, error) { return fsys.open(name, true) }

func (fsys *FS) open(name string, writable bool) (vfs.File, error) {
	fsys.mu.RLock()
	defer fsys.mu.RUnlock()
	f, err := fsys.find(name)
	if err == nil && f == nil {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, failure("open", name, err)
	}
	return &handle{name: name, file: f, writable: writable}, nil
}

// find returns a file, or nil for a directory. The caller must hold mu.
func (fsys *FS) find(name string) (*file, error) {
	name = clean(name)
	if f, ok := fsys.nodes[name]; ok {
		return f, nil
	}
	return nil, fsys.requireDir(parent(name))
}

// requireDir returns ErrNotExist if the directory or the nearest existing one above it is a
// directory, and ENOTDIR if that is a file. The caller must hold mu.
func (fsys *FS) requireDir(name string) error {
	for ; ; name = parent(name) {
		if f, ok := fsys.nodes[name]; ok && f != nil {
			return syscall.ENOTDIR
		} else if ok {
			return fs.ErrNotExist
		}
	}
}

// Create implements [vfs.FS].
func (fsys *FS) Create(name string) (vfs.File, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	at := clean(name)
	if _, ok := fsys.nodes[at]; ok {
		return nil, failure("create", name, fs.ErrExist)
	}
	if above, ok := fsys.nodes[parent(at)]; !ok || above != nil {
		return nil, failure("create", name, fsys.requireDir(parent(at)))
	}
	f := new(file)
	fsys.nodes[at] = f
	return &handle{name: name, file: f, writable: true}, nil
}

// Remove implements [vfs.FS].
func (fsys *FS) Remove(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	f, err := fsys.find(name)
	if err != nil {
		return failure("remove", name, err)
	}
	at := clean(name)
	if at == "" {
		return failure("remove", name, fs.ErrInvalid)
	}
	if f == nil {
		for other := range fsys.nodes {
			if other != "" && parent(other) == at {
				return failure("remove", name, syscall.ENOTEMPTY)
			}
		}
	}
	delete(fsys.nodes, at)
	return nil
}

// Rename implements [vfs.FS].
func (fsys *FS) Rename(oldName, newName string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	from, to := clean(oldName), clean(newName)
	f, err := fsys.find(oldName)
	target, exists := fsys.nodes[to]
	above, known := fsys.nodes[parent(to)]
	switch {
	case err != nil:
	case f == nil, exists && target == nil:
		err = syscall.EISDIR
	case !known || above != nil:
		err = fsys.requireDir(parent(to))
	case parent(from) != parent(to):
		err = syscall.EXDEV
	}
	if err != nil {
		return failure("rename", oldName, err)
	}
	delete(fsys.nodes, from)
	fsys.nodes[to] = f
	return nil
}

// MkdirAll implements [vfs.FS].
func (fsys *FS) MkdirAll(dir string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	var missing []string
	for at := clean(dir); ; at = parent(at) {
		f, ok := fsys.nodes[at]
		if f != nil {
			return failure("mkdir", dir, syscall.ENOTDIR)
		}
		if ok {
			break
		}
		missing = append(missing, at)
	}
	for _, at := range missing {
		fsys.nodes[at] = nil
	}
	return nil
}

// List implements [vfs.FS].
func (fsys *FS) List(dir string) ([]string, error) {
	fsys.mu.RLock()
	defer fsys.mu.RUnlock()
	f, err := fsys.find(dir)
	if f != nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, failure("list", dir, err)
	}
	var names []string
	for name, f := range fsys.nodes {
		if f != nil && parent(name) == clean(dir) {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stat implements [vfs.FS].
func (fsys *FS) Stat(name string) (vfs.Info, error) {
	fsys.mu.RLock()
	defer fsys.mu.RUnlock()
	f, err := fsys.find(name)
	switch {
	case err != nil:
		return vfs.Info{}, failure("stat", name, err)
	case f == nil:
		return vfs.Info{}, nil
	}
	return vfs.Info{Size: f.length()}, nil
}

// SyncDir implements [vfs.FS].
func (fsys *FS) SyncDir(dir string) error {
	fsys.mu.RLock()
	defer fsys.mu.RUnlock()
	if _, err := fsys.find(dir); err != nil {
		return failure("syncdir", dir, err)
	}
	return nil
}
