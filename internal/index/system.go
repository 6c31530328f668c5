package index

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// mappedFiles says what the system does to a file that is open and mapped.
type mappedFiles struct {
	grow     bool // it is as large as what is mapped of it
	keepName bool // no file can take its name
}

var mappedFilesHere = mappedFiles{grow: runtime.GOOS == "windows", keepName: runtime.GOOS == "windows"}

// leastMapped64 returns the least size to map on 64-bit systems: address space, not memory, where files do not grow to it.
func leastMapped64() uint64 {
	if mappedFilesHere.grow {
		return 1 << 30
	}
	return 256 << 30
}

// asideSuffix and a number end the name of a replaced index that is still read, where it keeps its name.
const asideSuffix = ".replaced-"

// replace gives the name of the open file to a new one. If the old one has to be renamed for this, it returns its new
// name, and the caller removes it after it was closed. A crash in between leaves no index, and the next process that opens
// the store makes one.
func (m mappedFiles) replace(fresh, name string) (aside string, err error) {
	if !m.keepName {
		return "", os.Rename(fresh, name)
	}
	for n := 0; aside == ""; n++ {
		free := fmt.Sprint(name, asideSuffix, n)
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			aside = free
		} else if err != nil {
			return "", err
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

// removeAside removes replaced files that a crash left.
func removeAside(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(path)+asideSuffix) {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(path), entry.Name())))
		}
	}
	return err
}
