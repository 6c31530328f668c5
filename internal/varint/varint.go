// Package varint reads unsigned varints from bytes that may be damaged.
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
