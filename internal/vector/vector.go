// Package vector handles embeddings: vectors of 32-bit floats, their binary form, and their similarity.
package vector

import (
	"encoding/binary"
	"math"
)

// Encode returns a vector as little-endian 32-bit floats.
func Encode(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}

// Decode appends the vector in b to v. It returns v if b is not a vector.
func Decode(v []float32, b []byte) []float32 {
	if len(b)%4 != 0 {
		return v
	}
	for ; len(b) > 0; b = b[4:] {
		v = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return v
}

// HasDirection reports whether a vector consists of finite numbers that are not all 0.
func HasDirection(v []float32) bool {
	_, ok := Cosine(v, v)
	return ok
}

// Cosine returns the cosine of the angle between two vectors, from -1 to 1. It returns false if they
// differ in length or one has no direction.
func Cosine(a, b []float32) (float64, bool) {
	if len(a) != len(b) {
		return 0, false
	}
	var product, lengthA, lengthB float64 // squares of 32-bit floats neither overflow nor vanish
	for i, x := range a {
		x, y := float64(x), float64(b[i])
		product += x * y
		lengthA += x * x
		lengthB += y * y
	}
	both := math.Sqrt(lengthA) * math.Sqrt(lengthB)
	if !(both > 0) || math.IsInf(both, 0) {
		return 0, false
	}
	return max(-1, min(1, product/both)), true
}
