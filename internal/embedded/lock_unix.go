//go:build unix

package embedded

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errWouldBlock
		default:
			return err
		}
	}
}

// touch sets the modification time of a file to now.
func touch(f *os.File) {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	_ = unix.Futimes(int(f.Fd()), []unix.Timeval{now, now})
}
