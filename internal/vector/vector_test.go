package vector

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEncode(t *testing.T) {
	v := []float32{1, -0.5, math.MaxFloat32}
	require.Equal(t, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf, 0xff, 0xff, 0x7f, 0x7f}, Encode(v))
	require.Equal(t, v, Decode(nil, Encode(v)))
	require.Nil(t, Decode(nil, []byte{1, 2, 3}))
	require.Nil(t, Decode(nil, nil))
}

func TestCosine(t *testing.T) {
	tiny, huge := float32(math.SmallestNonzeroFloat32), float32(math.MaxFloat32)
	for _, c := range []struct {
		a, b []float32
		want float64
	}{
		{[]float32{1, 0}, []float32{0, 3}, 0}, {[]float32{1, 1}, []float32{5, 0}, math.Sqrt2 / 2},
		{[]float32{tiny, 0}, []float32{huge, 0}, 1}, {[]float32{huge, huge}, []float32{-tiny, -tiny}, -1},
	} {
		got, ok := Cosine(c.a, c.b)
		require.True(t, ok, c)
		require.InDelta(t, c.want, got, 1e-12, c)
		require.LessOrEqual(t, math.Abs(got), 1.0, c)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, bad := range [][]float32{nil, {}, {0, 0}, {1}, {nan, 1}, {inf, 1}, {1, 2, 3}} {
		_, ok := Cosine(bad, []float32{1, 1})
		require.False(t, ok, bad)
	}
	for _, bad := range [][]float32{nil, {0, 0}, {nan, 1}, {inf, 1}} {
		require.False(t, HasDirection(bad), bad)
	}
	require.True(t, HasDirection([]float32{0, -tiny}))
}
