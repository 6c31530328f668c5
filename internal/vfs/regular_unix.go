//go:build unix

package vfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// openRegular opens a file, but no symbolic link, and does not wait for the other end of a pipe.
func openRegular(name string, flag int, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode)
}

// Give gives a file that root has just created to the user of its directory, who could not open it
// otherwise. It does nothing for other users, and where the system does not let it.
func Give(f *os.File) {
	if os.Geteuid() != 0 {
		return
	}
	if info, err := os.Lstat(filepath.Dir(f.Name())); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(stat.Uid), int(stat.Gid))
		}
	}
}

// links returns the number of names of a file.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

// SetSparse does nothing: all files are sparse.
func SetSparse(*os.File) error { return nil }
