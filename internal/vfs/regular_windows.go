package vfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow opens a symbolic link itself, not its target.
const noFollow = windows.FILE_FLAG_OPEN_REPARSE_POINT

// Give does nothing on Windows.
func Give(*os.File) {}

// links returns 1: the number of names is not known here.
func links(fs.FileInfo) uint64 { return 1 }
