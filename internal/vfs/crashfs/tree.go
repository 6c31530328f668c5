package crashfs

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// dir is a directory: its names as programs see them, and as they are on the
// disk.
type dir struct {
	live, durable map[string]dirEntry
}

func newDir() *dir {
	return &dir{live: map[string]dirEntry{}, durable: map[string]dirEntry{}}
}

// file is the content of a file, as programs see it and as it is on the disk.
// It can outlive its name.
type file struct {
	live, durable []byte
}

// dirEntry is the target of a name: a file, a directory, or nothing.
type dirEntry struct {
	file *file
	dir  *dir
}

func (e dirEntry) exists() bool { return e != dirEntry{} }

// split returns the elements of a name, none for the root.
func split(name string) []string {
	clean := strings.TrimPrefix(path.Clean(filepath.ToSlash(name)), "/")
	if clean == "." || clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

// find returns the file or directory called name.
func (d *dir) find(name string) (dirEntry, error) {
	e := dirEntry{dir: d}
	for _, part := range split(name) {
		if e.dir == nil {
			return dirEntry{}, syscall.ENOTDIR
		}
		e = e.dir.live[part]
		if !e.exists() {
			return dirEntry{}, fs.ErrNotExist
		}
	}
	return e, nil
}

func (d *dir) findFile(name string) (*file, error) {
	e, err := d.find(name)
	if err != nil {
		return nil, err
	}
	if e.file == nil {
		return nil, syscall.EISDIR
	}
	return e.file, nil
}

func (d *dir) findDir(name string) (*dir, error) {
	e, err := d.find(name)
	if err != nil {
		return nil, err
	}
	if e.dir == nil {
		return nil, syscall.ENOTDIR
	}
	return e.dir, nil
}

// findParent returns the directory that name is or would be in, and its base
// name. The root has none.
func (d *dir) findParent(name string) (parent *dir, base string, err error) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, "", fs.ErrInvalid
	}
	base = parts[len(parts)-1]
	parent, err = d.findDir(strings.Join(parts[:len(parts)-1], "/"))
	return parent, base, err
}

// walk calls visit for every file below d as programs see it.
func (d *dir) walk(prefix string, visit func(name string, f *file)) {
	for base, e := range d.live {
		name := path.Join(prefix, base)
		if e.dir != nil {
			e.dir.walk(name, visit)
			continue
		}
		visit(name, e.file)
	}
}
