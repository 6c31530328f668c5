package index

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"
)

// mapSize64 is small on Windows, where the file grows to the mapped size.
const mapSize64 = 1 << 30

// fillsMap reports whether an open file is as large as what is mapped of it.
const fillsMap = true

// asideSuffix and a number end the name of a replaced index that is still read.
const asideSuffix = ".replaced-"

// replaceFile gives the name of an open file to another open file. No file can take the name of a mapped one, which gets
// another name: the caller removes it after it was closed. A crash in between leaves no index, and the next process that
// opens the store makes one.
func replaceFile(fresh, name string) (aside string, err error) {
	for n := 0; ; n++ {
		aside = fmt.Sprint(name, asideSuffix, n)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err := os.Rename(name, aside); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, name); err != nil {
		return "", errors.Join(err, os.Rename(aside, name))
	}
	return aside, nil
}

// prepareFile lets the file take room on the disk only where something was written.
func prepareFile(f *os.File) error {
	var n uint32
	err := windows.DeviceIoControl(windows.Handle(f.Fd()), windows.FSCTL_SET_SPARSE, nil, 0, nil, 0, &n, nil)
	if errors.Is(err, windows.ERROR_INVALID_FUNCTION) || errors.Is(err, windows.ERROR_NOT_SUPPORTED) {
		return nil // the file system has no such files
	}
	return err
}

// removeAside removes replaced files that a crash left.
func removeAside(name string) error {
	entries, err := os.ReadDir(filepath.Dir(name))
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(name)+asideSuffix) {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(name), entry.Name())))
		}
	}
	return err
}
