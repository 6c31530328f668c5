//go:build !amd64 && !arm64

package prefetch

import "unsafe"

// Line has the processor load the cache line that p points into, on those that we know
// how to tell. It waits for nothing, changes nothing, and any p will do.
func Line(unsafe.Pointer) {}
