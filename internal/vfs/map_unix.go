//go:build unix

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// ReadMapped returns the first size bytes of a file in mapped memory, until Unmap. They stay when the file is closed or removed,
// and must not be written.
func ReadMapped(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

// Unmap gives mapped memory back, which nothing may read any more.
func Unmap(mapped []byte) error { return unix.Munmap(mapped) }
