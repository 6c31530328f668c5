//go:build unix

package bench

import (
	"syscall"
	"time"
)

// mostResident returns the largest resident memory that the process had, in bytes where the kernel counts in KiB.
func mostResident() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return uint64(u.Maxrss) << 10
}

// processTime returns the CPU time of the process, including the kernel.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
