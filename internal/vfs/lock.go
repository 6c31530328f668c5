package vfs

import "errors"

// ErrBusy is returned by TryLock if another open file has the lock.
var ErrBusy = errors.New("held by another process")
