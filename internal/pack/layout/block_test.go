package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParityFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(t, "bytes")
		at := rapid.Int64Range(0, 5000).Draw(t, "offset")
		size := 1 << rapid.IntRange(0, 9).Draw(t, "size")
		whole, small := make(Parity, 512), make(Parity, size)
		for left := b; len(left) > 0; { // in random pieces
			n := rapid.IntRange(1, len(left)).Draw(t, "piece")
			whole.Add(left[:n], at+int64(len(b)-len(left)))
			left = left[n:]
		}
		for i, x := range b {
			small[(at+int64(i))%int64(size)] ^= x
		}
		require.Equal(t, small, whole.Fold(size))
	})
}
