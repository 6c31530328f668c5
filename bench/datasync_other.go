//go:build !linux

package bench

import "os"

// dataSync makes written data durable.
func dataSync(f *os.File) error { return f.Sync() }
