//go:build unix

package scratch

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether a directory belongs to this user and is closed to all others.
func own(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid() && info.Mode().Perm() == 0o700
}
