package vfs

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// openRegular opens a file as os.OpenFile does, but others may rename and remove it meanwhile, as on Unix: a reader of a
// session must not be in the way of its agent. A symbolic link is opened itself, not its target.
func openRegular(name string, flag int, _ fs.FileMode) (*os.File, error) {
	access := uint32(windows.GENERIC_READ)
	switch flag & (os.O_RDONLY | os.O_WRONLY | os.O_RDWR) {
	case os.O_WRONLY:
		access = windows.GENERIC_WRITE
	case os.O_RDWR:
		access = windows.GENERIC_READ | windows.GENERIC_WRITE
	}
	creation := uint32(windows.OPEN_EXISTING)
	switch {
	case flag&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		creation = windows.CREATE_NEW
	case flag&os.O_CREATE != 0:
		creation = windows.OPEN_ALWAYS
	}
	path, err := windows.UTF16PtrFromString(name)
	if err == nil {
		var handle windows.Handle
		share := uint32(windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE)
		attributes := uint32(windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_OPEN_REPARSE_POINT | windows.FILE_FLAG_BACKUP_SEMANTICS)
		if handle, err = windows.CreateFile(path, access, share, nil, creation, attributes, 0); err == nil {
			return os.NewFile(uintptr(handle), name), nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
}

// Give does nothing on Windows.
func Give(*os.File) {}

// links returns 1: the number of names is not known here.
func links(fs.FileInfo) uint64 { return 1 }

// SetSparse lets a file take room on the disk only where something was written, if the file system has such files.
func SetSparse(f *os.File) error {
	var n uint32
	err := windows.DeviceIoControl(windows.Handle(f.Fd()), windows.FSCTL_SET_SPARSE, nil, 0, nil, 0, &n, nil)
	if errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED) {
		return nil
	}
	return err
}
