//go:build unix

package vfs

import "golang.org/x/sys/unix"

// notFollowing opens no symbolic link, and waits for nobody at the other end of a pipe.
const notFollowing = unix.O_NOFOLLOW | unix.O_NONBLOCK
