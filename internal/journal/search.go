package journal

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"sync"
)

// laterFrames is the result of a search for frames after damage.
type laterFrames struct {
	found   bool
	number  uint64 // of the frame that proves most commits durable
	durable uint64
}

// framesAmong searches every byte for frames that can have been written after
// commit number after. The salt prevents bytes of messages from being taken for
// frames.
func framesAmong(b []byte, saltCRC uint32, after uint64) laterFrames {
	var later laterFrames
	sums := newRangeSums(b)
	for at := 0; ; {
		f, _, end := sums.nextFrame(saltCRC, at, 0, after)
		if end == 0 {
			return later
		}
		later.found = true
		if f.Durable > later.durable {
			later.durable, later.number = f.Durable, f.Number
		}
		at = end
	}
}

// nextFrame returns the first frame from an offset on that can have been written
// after commit number after, which ended at the offset ended. end is 0 if there is
// none.
func (s *rangeSums) nextFrame(saltCRC uint32, from, ended int, after uint64) (f Frame, start, end int) {
	for i := from; i+minFrame <= len(s.b); i++ {
		size := frameSize(s.b[i:])
		if size == 0 || size > int64(len(s.b)-i) {
			continue
		}
		end := i + int(size)
		f, ok := decodeBody(s.b[i:end])
		if ok && f.fits(after, i-ended) && s.frame(saltCRC, i, end) == binary.LittleEndian.Uint32(s.b[i+4:]) {
			return f, i, end
		}
	}
	return Frame{}, 0, 0
}

// fits reports whether a frame can be at a distance in bytes from the end of a
// commit.
func (f Frame) fits(after uint64, distance int) bool {
	if f.Number == after {
		return f.Mark
	}
	return f.Number > after && f.Number-after <= uint64(distance/minFrame)+1
}

// rangeSums returns the checksum of any range of b in constant time, so that a
// search at every byte takes linear time. A checksum without the inversions before
// and after it is the remainder of a polynomial division, in which appending bytes
// is a multiplication.
type rangeSums struct {
	b      []byte
	prefix []uint32 // remainders of the bytes before every stride-th
}

const stride = 1 << 10

func newRangeSums(b []byte) *rangeSums {
	s := &rangeSums{b: b, prefix: make([]uint32, 1, len(b)/stride+1)}
	for at := stride; at <= len(b); at += stride {
		s.prefix = append(s.prefix, remainder(s.prefix[len(s.prefix)-1], b[at-stride:at]))
	}
	return s
}

// frame returns the checksum of the frame from start to end.
func (s *rangeSums) frame(saltCRC uint32, start, end int) uint32 {
	body := start + frameHeader
	r := remainder(^saltCRC, s.b[start:start+4]) ^ s.upTo(body)
	powers := bytePowers()
	for k, n := 0, end-body; n > 0; k, n = k+1, n>>8 {
		r = multiply(r, powers[k][n&0xff])
	}
	return ^(r ^ s.upTo(end))
}

func (s *rangeSums) upTo(n int) uint32 {
	return remainder(s.prefix[n/stride], s.b[n/stride*stride:n])
}

// bytePowers returns, at [k][v], the polynomial by which v·256^k appended bytes
// multiply.
var bytePowers = sync.OnceValue(func() *[4][256]uint32 {
	powers := new([4][256]uint32)
	byByte := bits.Reverse32(1 << 8)
	for k := range powers {
		powers[k][0] = bits.Reverse32(1)
		for v := 1; v < 256; v++ {
			powers[k][v] = multiply(powers[k][v-1], byByte)
		}
		byByte = multiply(powers[k][255], byByte)
	}
	return powers
})

// remainder continues a division with b.
func remainder(r uint32, b []byte) uint32 { return ^crc32.Update(^r, castagnoli, b) }

// multiply multiplies polynomials modulo that of CRC-32C; the highest bit is the
// coefficient of 1.
func multiply(a, b uint32) uint32 {
	var product uint32
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}
