package layout

import (
	"crypto/subtle"
)

// A pack ends with the parity of all bytes before it: the exclusive or of its blocks, which are
// as long as the parity. It restores one damaged block: the exclusive or of all blocks and the
// parity is the difference between the damaged block and the original. The checksum of a part
// shows which block is damaged.
const (
	minParity = 64
	MaxParity = 16 << 10
	// parityShare is the minimum number of bytes for each byte of parity, for parities between these sizes.
	parityShare = 256
)

// ParitySize returns the size of the parity of n bytes, a power of two.
func ParitySize(n int64) int {
	size := minParity
	for size < MaxParity && 2*int64(size)*parityShare <= n {
		size *= 2
	}
	return size
}

// Parity is one block. Its length is a power of two.
type Parity []byte

// Add adds the bytes at an offset of the file.
func (p Parity) Add(b []byte, at int64) {
	for len(b) > 0 {
		into := p[at&int64(len(p)-1):]
		n := subtle.XORBytes(into, into[:min(len(into), len(b))], b)
		b, at = b[n:], at+int64(n)
	}
}

// Fold returns the parity for a smaller block size.
func (p Parity) Fold(size int) Parity {
	folded := make(Parity, size)
	folded.Add(p, 0)
	return folded
}
