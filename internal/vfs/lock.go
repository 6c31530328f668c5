package vfs

import "errors"

// LockMode is how TryLock locks a file.
type LockMode bool

// The modes of locks.
const (
	Exclusive LockMode = false
	Shared    LockMode = true
)

// ErrBusy is returned by TryLock if another open file has the lock.
var ErrBusy = errors.New("held by another process")
