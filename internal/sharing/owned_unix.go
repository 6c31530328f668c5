//go:build unix

package sharing

import (
	"os"
	"syscall"
)

// userOf returns the user to whom a file belongs, if there is one.
func userOf(name string) (int, bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, false
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(is.Uid), true
}
