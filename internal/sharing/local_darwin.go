package sharing

import "golang.org/x/sys/unix"

// isLocal reports whether a directory is on a file system that only this machine uses.
func isLocal(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Flags&unix.MNT_LOCAL != 0
}
