package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is returned when a name in a store leads to something else than the
// file or directory that belongs there: a symbolic link, a pipe, a socket, a device.
var ErrNotRegular = errors.New("not a regular file or directory")

// NotRegularError says what has the name of a file or directory of a store. It matches
// ErrNotRegular.
type NotRegularError struct {
	Path     string
	Is, Want string
}

func (e *NotRegularError) Error() string {
	return fmt.Sprintf("%s is %s, not %s", e.Path, e.Is, e.Want)
}

func (e *NotRegularError) Unwrap() error { return ErrNotRegular }

// OpenFile opens a regular file with the flags of os.OpenFile. Anything else under the
// name, a symbolic link included, is a NotRegularError: a store may have been
// prepared by somebody else, and must lead to nothing outside. A new file can be read
// by its owner only.
func OpenFile(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|notFollowing, fileMode)
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
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile returns what is in a regular file of at most so many bytes. A larger one is
// an error.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := OpenFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("larger than %d bytes", most)}
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

// CheckDir returns an error unless the name is that of a directory, and not of a
// symbolic link to one.
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
	is := "a special file"
	switch {
	case mode.IsRegular():
		is = "a regular file"
	case mode.IsDir():
		is = "a directory"
	case mode&fs.ModeSymlink != 0:
		is = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		is = "a named pipe"
	case mode&fs.ModeSocket != 0:
		is = "a socket"
	case mode&fs.ModeDevice != 0:
		is = "a device"
	}
	return &NotRegularError{Path: name, Is: is, Want: want}
}

// NotSocket returns the error for what has the name of a socket of a store, and is none.
func NotSocket(path string, mode fs.FileMode) error { return notRegular(path, mode, "a socket") }

// IsUnwritable reports whether an error says that files cannot be written: by this user, on this
// medium, or because it is full.
func IsUnwritable(err error) bool {
	for _, why := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}
