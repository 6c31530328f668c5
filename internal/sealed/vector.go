package sealed

import (
	"encoding/binary"
	"math/bits"

	"github.com/lineage-store/lineage/internal/varint"
)

// vector is numbers, each of which is read by itself: number i is a base, plus a slope times i or times
// the number at the same place in an earlier vector, plus some bits.
type vector struct {
	base    uint64
	slope   int64 // in units of 2^-slopeBits, of i if there is no earlier vector
	earlier int   // earlier vector of the group, or -1
	width   int   // of the bits
	bits    []byte
}

const (
	slopeBits = 16
	same      = 1 << slopeBits // the slope that adds the number in an earlier vector as it is
)

// at returns number i of a vector without an earlier one. Numbers after the last are anything.
func (v *vector) at(i int) uint64 { return v.after(uint64(i), i) }

// after returns number i, where x is i, or the number in the earlier vector.
func (v *vector) after(x uint64, i int) uint64 {
	return v.base + steps(x, v.slope) + readBits(v.bits, i*v.width, v.width)
}

func steps(x uint64, slope int64) uint64 {
	if slope == same {
		return x
	}
	return uint64(int64(x) * slope >> slopeBits)
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

// A vector has a head and its bits. The head is varints: 4 times the width, plus 1 with a slope of i or 2
// with an earlier vector; of that, twice how many vectors back, plus 1 if its slope is not 1; the slope (zigzag);
// the base (zigzag).
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

// residual returns what is left of number i. earlier is the earlier vector, if there is one.
func (f *fit) residual(numbers, earlier []uint64, i int) int64 {
	x := uint64(i)
	if earlier != nil {
		x = earlier[i]
	}
	return int64(numbers[i] - steps(x, f.slope))
}

// measure sets the base and the width.
func (f *fit) measure(numbers, earlier []uint64) {
	least, most := int64(1<<63-1), int64(-1<<63)
	for i := range numbers {
		r := f.residual(numbers, earlier, i)
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
// for those from which none may follow.
func fitOf(numbers []uint64, earlier [][]uint64) (best fit) {
	best.measure(numbers, nil)
	n := len(numbers)
	if n < 3 || best.width == 0 {
		return best
	}
	try := func(f fit, e []uint64) {
		if f.measure(numbers, e); f.cost(n) < best.cost(n) {
			best = f
		}
	}
	if slope, ok := slopeOf(numbers[n-1]-numbers[0], uint64(n-1)); ok {
		try(fit{mode: withSlope, slope: slope}, nil)
	}
	for i, e := range earlier {
		if e == nil || best.width < 4 {
			continue
		}
		f := fit{mode: withEarlier, back: len(earlier) - i, slope: same}
		try(f, e)
		least, most := 0, 0
		for k, x := range e {
			if x < e[least] {
				least = k
			}
			if x > e[most] {
				most = k
			}
		}
		if slope, ok := slopeOf(numbers[most]-numbers[least], e[most]-e[least]); ok && slope != 0 && slope != same {
			f.slope = slope
			try(f, e)
		}
	}
	return best
}

// slopeOf returns the slope of a difference over some distance, if both are small enough for one.
func slopeOf(differ, over uint64) (slope int64, ok bool) {
	const limit = 1 << 46
	if d := int64(differ); over > 0 && over < limit && -limit < d && d < limit {
		return d << slopeBits / int64(over), true
	}
	return 0, false
}

// appendVector appends the head and the bits of a vector.
func appendVector(head, data []byte, numbers []uint64, earlier [][]uint64, f fit) (h, d []byte) {
	head = binary.AppendUvarint(head, uint64(f.width<<2|f.mode))
	var from []uint64
	switch f.mode {
	case withSlope:
		head = binary.AppendVarint(head, f.slope)
	case withEarlier:
		from = earlier[len(earlier)-f.back]
		if f.slope == same {
			head = binary.AppendUvarint(head, uint64(f.back)<<1)
		} else {
			head = binary.AppendVarint(binary.AppendUvarint(head, uint64(f.back)<<1|1), f.slope)
		}
	}
	head = binary.AppendVarint(head, f.base)
	w := bitWriter{dst: data}
	if f.width > 0 {
		for i := range numbers {
			w.put(uint64(f.residual(numbers, from, i)-f.base), f.width)
		}
	}
	return head, w.finish()
}

// readVector reads the head of a vector after so many earlier ones.
func readVector(r *varint.Reader, earlier int) (v vector) {
	first := r.AtMost(64<<2 | 3)
	v.width, v.earlier = int(first>>2), -1
	switch first & 3 {
	case withSlope:
		v.slope = r.Signed()
	case withEarlier:
		back := r.Size(2*earlier + 1)
		if v.earlier, v.slope = earlier-back>>1, same; back&1 != 0 {
			v.slope = r.Signed()
		}
		if v.earlier == earlier {
			r.Bad = true
		}
	case ofChoices:
		r.Bad = true
	}
	v.base = uint64(r.Signed())
	return v
}
