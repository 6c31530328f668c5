package bench

import (
	"os"
	"syscall"
)

// dataSync makes what was written survive power loss.
func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
