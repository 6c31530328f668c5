package pack

import (
	"encoding/binary"
	"math/bits"
)

// bitWriter appends bits to bytes, the lowest first.
type bitWriter struct {
	b   []byte
	acc uint64
	n   int
}

// put writes at most 32 bits.
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

// bitReader reads what a bitWriter wrote. Behind the end it reads zeros and is bad.
type bitReader struct {
	b   []byte
	acc uint64
	n   int
	bad bool
}

// fill makes at least 56 bits be at hand, or all that are left.
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

// take returns at most 32 bits.
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

// ones counts the ones up to a zero, which it takes too.
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

// spent reports whether nothing but the zeros that fill the last byte is left.
func (r *bitReader) spent() bool { return !r.bad && len(r.b) == 0 && r.n < 8 && r.acc == 0 }
