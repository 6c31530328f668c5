//go:build !linux

package vfs

import "os"

// syncData uses the strongest sync of package os: F_FULLFSYNC on Apple systems,
// FlushFileBuffers on Windows, fsync elsewhere.
func syncData(f *os.File) error { return f.Sync() }
