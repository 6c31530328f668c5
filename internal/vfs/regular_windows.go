package vfs

import "golang.org/x/sys/windows"

// noFollow opens a symbolic link itself, not its target.
const noFollow = windows.FILE_FLAG_OPEN_REPARSE_POINT
