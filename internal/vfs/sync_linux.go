package vfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// syncData uses fdatasync, which writes the size along with the data but saves
// the journal write that fsync makes for the modification time.
func syncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	err = conn.Control(func(fd uintptr) {
		for {
			syncErr = unix.Fdatasync(int(fd))
			if syncErr != unix.EINTR {
				return
			}
		}
	})
	if err != nil { // the only reason for Control to fail
		syncErr = fs.ErrClosed
	}
	if syncErr != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: syncErr}
	}
	return nil
}
