//go:build unix

package embedded

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// touch sets the modification time of a file to now.
func touch(f *os.File) {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	_ = unix.Futimes(int(f.Fd()), []unix.Timeval{now, now})
}
