// Package varint reads varints from bytes that may be damaged.
package varint

import "encoding/binary"

// Minimal decodes the varint at the start of b and returns its size. The size is 0 if there is none, or if it is
// longer than necessary.
func Minimal(b []byte) (v uint64, n int) {
	v, n = binary.Uvarint(b)
	if n <= 0 || n > 1 && b[n-1] == 0 {
		return 0, 0
	}
	return v, n
}

// Len is the size of the varint of v.
func Len(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// Zigzag maps numbers to unsigned ones that are small for small numbers of either sign, as binary.AppendVarint does.
func Zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

// Unzigzag is the inverse of Zigzag.
func Unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// Reader reads varints and bytes. After the first that is missing or too large, Bad is set, Rest is empty, and all
// further results are zero.
type Reader struct {
	Rest []byte
	Bad  bool
}

func (r *Reader) fail() {
	r.Bad, r.Rest = true, nil
}

// Next returns the next varint, minimal or not.
func (r *Reader) Next() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Signed returns the next signed varint.
func (r *Reader) Signed() int64 { return Unzigzag(r.Next()) }

// AtMost returns the next varint, which must not be larger than most.
func (r *Reader) AtMost(most uint64) uint64 {
	v := r.Next()
	if v > most {
		r.fail()
		return 0
	}
	return v
}

// Size is AtMost for sizes.
func (r *Reader) Size(most int) int { return int(r.AtMost(uint64(most))) }

// Take returns the next n bytes.
func (r *Reader) Take(n uint64) []byte {
	if r.Bad || n > uint64(len(r.Rest)) {
		r.fail()
		return nil
	}
	b := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return b
}
