//go:build unix

package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock takes the operating system's lock on an open file, which excludes other open files of
// the same file, also in this process. A shared lock excludes only exclusive ones. It ends when
// the file is unlocked or closed, or when the process ends.
func TryLock(f *os.File, mode LockMode) error {
	operation := unix.LOCK_EX
	if mode == Shared {
		operation = unix.LOCK_SH
	}
	for {
		err := unix.Flock(int(f.Fd()), operation|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrBusy
		default:
			return err
		}
	}
}

// Unlock releases the lock at once, even if a child process that is being started shares the open
// file for a moment.
func Unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
