package bench

import (
	"os"
	"syscall"
)

// dataSync makes written data durable.
func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
