//go:build amd64 || arm64

package prefetch

import "unsafe"

// Line has the processor load the cache line that p points into. It waits for nothing,
// changes nothing, and any p will do.
//
//go:noescape
func Line(p unsafe.Pointer)
