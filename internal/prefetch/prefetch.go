// Package prefetch tells the processor which memory will be looked at soon, so that it is
// there by then.
package prefetch

import "unsafe"

// lineSize is that of most processors.
const lineSize = 64

// Bytes has the processor load all of b.
func Bytes(b []byte) {
	for at := 0; at < len(b); at += lineSize {
		Line(unsafe.Pointer(&b[at]))
	}
}
