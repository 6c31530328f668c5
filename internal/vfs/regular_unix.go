//go:build unix

package vfs

import "golang.org/x/sys/unix"

// noFollow prevents opening symbolic links, and waiting for the other end of a pipe.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK
