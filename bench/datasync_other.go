//go:build !linux

package bench

import "os"

// dataSync makes what was written survive power loss.
func dataSync(f *os.File) error { return f.Sync() }
