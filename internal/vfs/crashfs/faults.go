package crashfs

import "io/fs"

// begin counts a changing operation and returns its fault, if any; a write
// still writes that many bytes.
func (fsys *FS) begin(op, name string) (written int, err error) {
	if fsys.dead {
		return 0, ErrCrashed
	}
	fsys.ops++
	if fsys.ops == fsys.crashAt {
		fsys.dead = true
		return fsys.tornAt, ErrCrashed
	}
	if f, ok := fsys.failing[fsys.ops]; ok {
		delete(fsys.failing, fsys.ops)
		return f.written, &fs.PathError{Op: op, Path: name, Err: f.err}
	}
	return 0, nil
}

// Ops returns the number of calls to operations that change the file system or
// make changes durable: Create, Remove, Rename, MkdirAll, WriteAt, Truncate,
// Sync and SyncDir, including failed ones.
func (fsys *FS) Ops() int {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	return fsys.ops
}

// CrashAfter arms a power cut in the n-th changing operation from now: n is 1
// for the next one. That operation has no effect; it and all later ones, reads
// included, return ErrCrashed. If it is a write, its first torn bytes are
// written; [FS.Crash] decides whether they survive.
func (fsys *FS) CrashAfter(n, torn int) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.crashAt, fsys.tornAt = fsys.ops+n, torn
}

// FailOp makes the n-th changing operation from now fail with err, once. It
// changes nothing, except that a failed Sync loses the writes before it.
func (fsys *FS) FailOp(n int, err error) { fsys.ShortWrite(n, 0, err) }

// ShortWrite is FailOp, except that a write fails after writing the given
// number of bytes.
func (fsys *FS) ShortWrite(n, written int, err error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	if fsys.failing == nil {
		fsys.failing = map[int]fault{}
	}
	fsys.failing[fsys.ops+n] = fault{written, err}
}

// FailSyncs makes every Sync and SyncDir fail with err, until it is called with
// nil.
func (fsys *FS) FailSyncs(err error) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.syncErr = err
}

// SetCapacity limits the total size of all files. A write beyond it writes as
// much as fits and fails with syscall.ENOSPC. A file counts with its size,
// including holes, while it has a name. Zero means no limit.
func (fsys *FS) SetCapacity(bytes int64) {
	fsys.mu.Lock()
	defer fsys.mu.Unlock()
	fsys.capacity = bytes
}

// full reports whether files cannot grow by that many bytes.
func (fsys *FS) full(growth int64) bool {
	return fsys.capacity > 0 && fsys.used()+growth > fsys.capacity
}

// room returns how many of n bytes can be written to f at off.
func (fsys *FS) room(f *file, off int64, n int) int {
	size := int64(len(f.live))
	if !fsys.full(off + int64(n) - size) {
		return n
	}
	limit := max(size, size+fsys.capacity-fsys.used())
	return int(min(max(limit-off, 0), int64(n)))
}
