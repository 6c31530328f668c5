package lookup

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter appends bits to bytes, lowest bit first.
type bitWriter struct {
	b   []byte
	acc uint64
	n   int
}

// put writes the n lowest bits, at most 32.
func (w *bitWriter) put(v uint64, n int) {
	w.acc |= v << w.n
	for w.n += n; w.n >= 8; w.n -= 8 {
		w.b = append(w.b, byte(w.acc))
		w.acc >>= 8
	}
}

func (w *bitWriter) finish() []byte {
	if w.n > 0 {
		w.b = append(w.b, byte(w.acc))
	}
	return w.b
}

// bitReader reads the output of a bitWriter. Past the end it reads zeros and sets
// bad.
type bitReader struct {
	b   []byte
	acc uint64
	n   int
	bad bool
}

// fill makes at least 56 bits available, or all that are left.
func (r *bitReader) fill() {
	if len(r.b) >= 8 {
		r.acc |= binary.LittleEndian.Uint64(r.b) << r.n
		whole := (63 - r.n) >> 3
		r.b, r.n = r.b[whole:], r.n+whole<<3
		return
	}
	for ; r.n <= 56 && len(r.b) > 0; r.b = r.b[1:] {
		r.acc |= uint64(r.b[0]) << r.n
		r.n += 8
	}
}

// take reads n bits, at most 32.
func (r *bitReader) take(n int) uint64 {
	if r.n < n {
		if r.fill(); r.n < n {
			r.bad = true
			return 0
		}
	}
	v := r.acc & (1<<n - 1)
	r.acc >>= n
	r.n -= n
	return v
}

// ones counts the ones up to the next zero, and consumes all of them.
func (r *bitReader) ones() (n uint64) {
	for {
		if r.n == 0 {
			if r.fill(); r.n == 0 {
				r.bad = true
				return 0
			}
		}
		ones := min(bits.TrailingZeros64(^r.acc), r.n)
		n += uint64(ones)
		if ones < r.n {
			r.acc >>= ones + 1
			r.n -= ones + 1
			return n
		}
		r.acc, r.n = r.acc>>ones, 0
	}
}

// spent reports whether only the zero padding of the last byte is left.
func (r *bitReader) spent() bool { return !r.bad && len(r.b) == 0 && r.n < 8 && r.acc == 0 }
