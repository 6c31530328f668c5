//go:build unix

package lock

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exists reports whether a pid is in use, by a process of any user.
func exists(pid int) bool {
	return !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
}
