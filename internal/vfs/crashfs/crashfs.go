// Package crashfs is a file system in memory that simulates power loss.
//
// It tracks whether each byte and each name is durable, and keeps an ordered
// log of the changes that are not. [FS.Crash] returns a file system as it might
// be after a crash. Faults can be armed as well: a power cut, a failed
// operation, failed syncs, a full disk.
//
// To crash a program at every step of its work, run it once undisturbed and
// read [FS.Ops], then once for each of these operations:
//
//	for n := 1; n <= ops; n++ {
//		disk := crashfs.New()
//		disk.CrashAfter(n, torn)
//		work(disk) // fails with ErrCrashed somewhere
//		check(disk.Crash(crashfs.KeepNone()))
//		check(disk.Crash(crashfs.Random(rng)))
//	}
//
// The model is as hostile as a disk is allowed to be, as far as that is
// affordable:
//
//   - a new directory is itself a name that its parent has to sync;
//   - syncing a file does not make its name durable;
//   - after a failed Sync, a later successful Sync does not make the earlier
//     writes durable, as on Linux;
//   - the changes of one directory reach the disk in order, those of different
//     directories in any order, and a rename is atomic.
//
// Names are slash-separated; a leading slash is ignored.
package crashfs

import (
	"io/fs"
	"maps"
	"slices"
	"syscall"

	"github.com/lineage-store/lineage/internal/vfs"
)

var _ vfs.FS = (*FS)(nil)

// New returns an empty file system.
func New() *FS { return &FS{root: newDir()} }

// Open implements [vfs.FS].
func (fsys *FS) Open(name string) (vfs.File, error) { return fsys.open(name, false) }

// OpenRW implements [vfs.FS].
func (fsys *FS) OpenRW(name string) (vfs.File, error) { return fsys.open(name, true) }

func (fsys *FS) open(name string, writable bool) (vfs.File, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.dead {
		return nil, ErrCrashed
	}
	f, err := fsys.root.findFile(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &handle{fsys: fsys, file: f, name: name, writable: writable}, nil
}

// Create implements [vfs.FS].
func (fsys *FS) Create(name string) (vfs.File, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if _, err := fsys.begin("create", name); err != nil {
		return nil, err
	}
	parent, base, err := fsys.root.findParent(name)
	if err == nil && parent.live[base].exists() {
		err = fs.ErrExist
	}
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: err}
	}
	f := new(file)
	fsys.relink(&nameChange{dir: parent, added: base, what: dirEntry{file: f}})
	return &handle{fsys: fsys, file: f, name: name, writable: true}, nil
}

// Remove implements [vfs.FS].
func (fsys *FS) Remove(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if _, err := fsys.begin("remove", name); err != nil {
		return err
	}
	if err := fsys.remove(name); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

func (fsys *FS) remove(name string) error {
	parent, base, err := fsys.root.findParent(name)
	if err != nil {
		return err
	}
	what := parent.live[base]
	if !what.exists() {
		return fs.ErrNotExist
	}
	if what.dir != nil && len(what.dir.live) > 0 {
		return syscall.ENOTEMPTY
	}
	fsys.relink(&nameChange{dir: parent, removed: base})
	return nil
}

// Rename implements [vfs.FS]. It fails with syscall.EXDEV if the names are in
// different directories.
func (fsys *FS) Rename(oldName, newName string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if _, err := fsys.begin("rename", oldName); err != nil {
		return err
	}
	if err := fsys.rename(oldName, newName); err != nil {
		return &fs.PathError{Op: "rename", Path: oldName, Err: err}
	}
	return nil
}

func (fsys *FS) rename(oldName, newName string) error {
	parent, from, err := fsys.root.findParent(oldName)
	if err != nil {
		return err
	}
	newParent, to, err := fsys.root.findParent(newName)
	if err != nil {
		return err
	}
	what := parent.live[from]
	switch {
	case !what.exists():
		return fs.ErrNotExist
	case what.dir != nil, newParent.live[to].dir != nil:
		return syscall.EISDIR
	case newParent != parent:
		return syscall.EXDEV
	case from == to:
		return nil
	}
	fsys.relink(&nameChange{dir: parent, removed: from, added: to, what: what})
	return nil
}

// MkdirAll implements [vfs.FS]. It is one operation, but each new directory is
// a separate change, which becomes durable by syncing its parent.
func (fsys *FS) MkdirAll(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if _, err := fsys.begin("mkdir", name); err != nil {
		return err
	}
	at := fsys.root
	for _, part := range split(name) {
		e := at.live[part]
		if e.file != nil {
			return &fs.PathError{Op: "mkdir", Path: name, Err: syscall.ENOTDIR}
		}
		if !e.exists() {
			e = dirEntry{dir: newDir()}
			fsys.relink(&nameChange{dir: at, added: part, what: e})
		}
		at = e.dir
	}
	return nil
}

// List implements [vfs.FS].
func (fsys *FS) List(name string) ([]string, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.dead {
		return nil, ErrCrashed
	}
	d, err := fsys.root.findDir(name)
	if err != nil {
		return nil, &fs.PathError{Op: "list", Path: name, Err: err}
	}
	var names []string
	for _, base := range slices.Sorted(maps.Keys(d.live)) {
		if d.live[base].file != nil {
			names = append(names, base)
		}
	}
	return names, nil
}

// Stat implements [vfs.FS].
func (fsys *FS) Stat(name string) (vfs.Info, error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.dead {
		return vfs.Info{}, ErrCrashed
	}
	e, err := fsys.root.find(name)
	if err != nil {
		return vfs.Info{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if e.dir != nil {
		return vfs.Info{}, nil
	}
	return vfs.Info{Size: int64(len(e.file.live))}, nil
}

// SyncDir implements [vfs.FS].
func (fsys *FS) SyncDir(name string) error {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if _, err := fsys.begin("syncdir", name); err != nil {
		return err
	}
	d, err := fsys.root.findDir(name)
	if err == nil {
		err = fsys.syncErr
	}
	if err != nil {
		return &fs.PathError{Op: "syncdir", Path: name, Err: err}
	}
	fsys.settleNames(d)
	return nil
}
