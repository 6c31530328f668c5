package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is returned if a name in a store is not the expected file or directory but a
// symbolic link, a pipe, a socket or a device, or a hard link where the file would be written.
var ErrNotRegular = errors.New("not a regular file or directory")

// NotRegularError describes an unexpected kind of file in a store. It matches
// ErrNotRegular.
type NotRegularError struct {
	Path     string
	Is, Want string
}

func (e *NotRegularError) Error() string {
	return fmt.Sprintf("%s is %s, not %s", e.Path, e.Is, e.Want)
}

func (e *NotRegularError) Unwrap() error { return ErrNotRegular }

// OpenFile opens a regular file with the flags of os.OpenFile: how to access it, O_CREATE and O_EXCL. Anything else, including a
// symbolic link, is a NotRegularError: a store may have been prepared by somebody else, and no
// name in it may lead outside. So is a file that is opened for writing and has another name, which
// may be outside. A new file is readable only by its owner.
func OpenFile(name string, flag int) (*os.File, error) {
	f, err := openRegular(name, flag, fileMode)
	if err != nil {
		if info, statErr := os.Lstat(name); statErr == nil && !info.Mode().IsRegular() && !errors.Is(err, fs.ErrExist) {
			return nil, notRegular(name, info.Mode(), "a regular file")
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(name, info.Mode(), "a regular file")
	}
	if err == nil && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		err = checkLinks(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// CheckWritten returns an error for a file that another library will write, unless it is a regular
// file without another name. A file that does not exist is allowed.
func CheckWritten(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return notRegular(name, info.Mode(), "a regular file")
	}
	return checkLinks(name, info)
}

// checkLinks refuses a file with several names.
func checkLinks(name string, info fs.FileInfo) error {
	if links(info) > 1 {
		return &NotRegularError{Path: name, Is: "a hard link to a file that has another name", Want: "a file of this store only; a copy can replace it"}
	}
	return nil
}

// ReadFile returns the content of a regular file. A file of more than limit bytes is an error.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("larger than %d bytes", limit)}
	}
	return b, err
}

// Size returns the size of a regular file.
func Size(name string) (int64, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, notRegular(name, info.Mode(), "a regular file")
	}
	return info.Size(), nil
}

// CheckDir returns an error unless name is a directory. A symbolic link to one is an
// error too.
func CheckDir(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return notRegular(name, info.Mode(), "a directory")
	}
	return nil
}

func notRegular(name string, mode fs.FileMode, want string) error {
	kind := "a special file"
	switch {
	case mode.IsRegular():
		kind = "a regular file"
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return &NotRegularError{Path: name, Is: kind, Want: want}
}

// NotSocket returns the error for a file that should be a socket of a store.
func NotSocket(path string, mode fs.FileMode) error { return notRegular(path, mode, "a socket") }

// IsUnwritable reports whether an error means that files cannot be written: missing permission,
// a read-only file system, or no space.
func IsUnwritable(err error) bool {
	for _, why := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// Conversations are private: only the owner may read a store.
const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)
