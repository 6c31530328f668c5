//go:build unix

package sharing

import (
	"os"
	"path/filepath"
	"syscall"
)

// isOurs reports whether a store belongs to the user of this process. One that is not there yet
// will.
func isOurs(dir string) bool {
	for _, name := range []string{filepath.Join(dir, "journal"), dir} {
		if info, err := os.Lstat(name); err == nil {
			is, ok := info.Sys().(*syscall.Stat_t)
			return ok && int(is.Uid) == os.Geteuid()
		}
	}
	return true
}
