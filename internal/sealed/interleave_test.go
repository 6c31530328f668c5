package sealed

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestInterleave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sizes []int
		total := 0
		for range rapid.IntRange(0, 5).Draw(t, "runs") {
			size := rapid.SampledFrom([]int{0, 1, 2, 3, 127, 128, 129}).Draw(t, "size")
			for range rapid.SampledFrom([]int{1, 15, 16, 17, 40}).Draw(t, "parts") {
				sizes, total = append(sizes, size), total+size
			}
		}
		parts := make([]byte, total)
		for i := range parts {
			parts[i] = byte(i * 7)
		}
		column, again := make([]byte, total), make([]byte, total)
		interleave(column, parts, sizes)
		separate(again, column, sizes)
		require.Equal(t, parts, again)
	})
	sizes, column := make([]int, 16), make([]byte, 32)
	parts := make([]byte, 0, 32)
	for i := range sizes {
		sizes[i], parts = 2, append(parts, byte(i), 'x')
	}
	interleave(column, parts, sizes)
	require.Equal(t, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fxxxxxxxxxxxxxxxx", string(column))
}
