//go:build unix

package sharing

import (
	"os"
	"syscall"
)

// userOf returns the user to whom a file belongs, if the file exists.
func userOf(name string) (int, bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
