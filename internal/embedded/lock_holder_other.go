//go:build !linux

package embedded

import "os"

// holder is not supported on this system.
func holder(*os.File) (pid int, command string) { return 0, "" }
