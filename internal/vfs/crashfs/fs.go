package crashfs

import (
	"errors"
	"sync"
)

// FS is a file system in memory. It is safe for concurrent use.
type FS struct {
	mu   sync.Mutex
	root *dir
	log  []pendingChange // changes that are not durable, in order
	dead bool
	faults
}

// faults counts the operations and holds the armed faults.
type faults struct {
	ops      int
	crashAt  int // number of an operation; 0 is never
	tornAt   int
	failing  map[int]fault
	syncErr  error
	capacity int64 // 0 is no limit
}

// fault is the failure of one operation.
type fault struct {
	written int
	err     error
}

// handle is an open file. Its fields are guarded by fsys.mu.
type handle struct {
	fsys     *FS
	file     *file
	name     string
	writable bool
	closed   bool
}

// ErrCrashed is returned by every operation on a file system that has lost
// power, and on its open files.
var ErrCrashed = errors.New("crashfs: power lost")

// pendingChange is a change that is not durable yet. Exactly one field is set.
type pendingChange struct {
	edit *edit
	link *nameChange
}

// edit changes the bytes of a file: a write of data at off, or a truncation
// to the size off.
type edit struct {
	file     *file
	off      int64
	data     []byte // must not change once logged
	truncate bool
	lost     bool // a sync of it failed, so no later sync makes it durable
}

// nameChange is an atomic change of names in one directory: it removes the name
// removed and adds the name added, for what. Either may be empty.
type nameChange struct {
	dir            *dir
	removed, added string
	what           dirEntry
}
