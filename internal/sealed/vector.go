package sealed

import (
	"encoding/binary"
	"math/bits"

	"github.com/lineage-store/lineage/internal/varint"
)

// vector is numbers, each of which is read by itself: number i is a base, plus i times a slope, plus
// the number at the same place in an earlier vector, plus some bits.
type vector struct {
	base  uint64
	slope int64 // in units of 2^-slopeBits
	of    int   // earlier vector of the group, or -1
	width int   // of the bits
	bits  []byte
}

const slopeBits = 16

// at returns number i without the earlier vector. Numbers after the last are anything.
func (v *vector) at(i int) uint64 {
	return v.base + uint64(int64(i)*v.slope>>slopeBits) + readBits(v.bits, i*v.width, v.width)
}

// readBits returns bits, of which there are at most 64. Those after the end are zero.
func readBits(b []byte, at, width int) (x uint64) {
	if width == 0 {
		return 0
	}
	i, shift := at>>3, at&7
	if i+9 <= len(b) {
		x = binary.LittleEndian.Uint64(b[i:])>>shift | uint64(b[i+8])<<1<<(63-shift)
	} else {
		for j := 0; j < 9 && i+j < len(b); j++ {
			if n := 8*j - shift; n < 0 {
				x |= uint64(b[i+j]) >> -n
			} else {
				x |= uint64(b[i+j]) << n
			}
		}
	}
	return x & (1<<width - 1)
}

// bitWriter appends numbers in so many bits, the lowest bit first.
type bitWriter struct {
	dst  []byte
	last uint64
	n    int // bits in last
}

func (w *bitWriter) put(x uint64, width int) {
	w.last |= x << w.n
	if w.n+width < 64 {
		w.n += width
		return
	}
	w.dst = binary.LittleEndian.AppendUint64(w.dst, w.last)
	w.last = x >> (64 - w.n)
	w.n += width - 64
}

func (w *bitWriter) finish() []byte {
	for ; w.n > 0; w.n -= 8 {
		w.dst = append(w.dst, byte(w.last))
		w.last >>= 8
	}
	return w.dst
}

// bytesOf returns the size of n numbers of so many bits.
func bytesOf(n, width int) int { return (n*width + 7) / 8 }

// A vector has a head and its bits. The head is varints: 4 times the width, plus 1 with a slope or 2
// with an earlier vector; the slope (zigzag), or how many vectors back; the base (zigzag).
const (
	withSlope   = 1
	withEarlier = 2
	ofChoices   = 3 // instead of a head: see group.go
)

// fit is a way to write numbers as a vector.
type fit struct {
	mode, back int
	slope      int64
	base       int64
	width      int
}

// residual returns what is left of number i, and earlier the number in the earlier vector.
func (f *fit) residual(numbers []uint64, i int, earlier uint64) int64 {
	return int64(numbers[i] - earlier - uint64(int64(i)*f.slope>>slopeBits))
}

// measure sets the base and the width.
func (f *fit) measure(numbers, earlier []uint64) {
	least, most := int64(1<<63-1), int64(-1<<63)
	for i := range numbers {
		var e uint64
		if earlier != nil {
			e = earlier[i]
		}
		r := f.residual(numbers, i, e)
		least, most = min(least, r), max(most, r)
	}
	if len(numbers) > 0 {
		f.base, f.width = least, bits.Len64(uint64(most)-uint64(least))
	}
}

// cost is the approximate size.
func (f *fit) cost(n int) int {
	c := bytesOf(n, f.width)
	if f.mode != 0 {
		c += 4
	}
	return c
}

// fitOf returns the smallest way to write numbers. earlier has the earlier vectors of the group, nil
// for those that are relative themselves.
func fitOf(numbers []uint64, earlier [][]uint64) (best fit) {
	best.measure(numbers, nil)
	n := len(numbers)
	if n < 3 || best.width == 0 {
		return best
	}
	if d := int64(numbers[n-1] - numbers[0]); d > -1<<46 && d < 1<<46 {
		f := fit{mode: withSlope, slope: d << slopeBits / int64(n-1)}
		if f.measure(numbers, nil); f.cost(n) < best.cost(n) {
			best = f
		}
	}
	for i, e := range earlier {
		if e == nil || best.width < 4 {
			continue
		}
		f := fit{mode: withEarlier, back: len(earlier) - i}
		if f.measure(numbers, e); f.cost(n) < best.cost(n) {
			best = f
		}
	}
	return best
}

// appendVector appends the head and the bits of a vector.
func appendVector(head, data []byte, numbers []uint64, earlier [][]uint64, f fit) (h, d []byte) {
	head = binary.AppendUvarint(head, uint64(f.width<<2|f.mode))
	var from []uint64
	switch f.mode {
	case withSlope:
		head = binary.AppendVarint(head, f.slope)
	case withEarlier:
		head = binary.AppendUvarint(head, uint64(f.back))
		from = earlier[len(earlier)-f.back]
	}
	head = binary.AppendVarint(head, f.base)
	w := bitWriter{dst: data}
	if f.width > 0 {
		for i := range numbers {
			var e uint64
			if from != nil {
				e = from[i]
			}
			w.put(uint64(f.residual(numbers, i, e)-f.base), f.width)
		}
	}
	return head, w.finish()
}

// readVector reads the head of a vector after so many earlier ones.
func readVector(r *varint.Reader, earlier int) (v vector) {
	first := r.AtMost(64<<2 | 3)
	v.width, v.of = int(first>>2), -1
	switch first & 3 {
	case withSlope:
		v.slope = unzigzag(r.Next())
	case withEarlier:
		if v.of = earlier - r.Size(earlier); v.of == earlier {
			r.Bad = true
		}
	case ofChoices:
		r.Bad = true
	}
	v.base = uint64(unzigzag(r.Next()))
	return v
}

func unzigzag(x uint64) int64 { return int64(x>>1) ^ -int64(x&1) }
