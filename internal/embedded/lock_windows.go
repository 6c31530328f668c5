package embedded

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// tryLock locks a byte far after the content of the file, so that refused
// processes can still read it.
func tryLock(f *os.File, shared bool) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errWouldBlock
	}
	return err
}

// touch sets the modification time of a file to now.
func touch(f *os.File) {
	now := time.Now()
	_ = os.Chtimes(f.Name(), now, now)
}
