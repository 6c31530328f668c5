package varint_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/varint"
)

func TestMinimal(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 1 << 40, 1<<64 - 1} {
		b := binary.AppendUvarint(nil, v)
		got, n := varint.Minimal(append(b, 7))
		require.EqualValues(t, v, got)
		require.Equal(t, len(b), n)
	}
	for _, b := range [][]byte{nil, {0x80}, {0x80, 0}, {0x81, 0x80, 0}, {255, 255, 255, 255, 255, 255, 255, 255, 255, 2}} {
		_, n := varint.Minimal(b)
		require.Zero(t, n, "%x", b)
	}
}

func TestReader(t *testing.T) {
	r := varint.Reader{Rest: []byte{5, 0x80, 1, 'a', 'b', 9, 3}}
	require.EqualValues(t, 5, r.Next())
	require.EqualValues(t, 128, r.AtMost(128))
	b := r.Take(2)
	require.Equal(t, "ab", string(b))
	require.Equal(t, 2, cap(b))
	require.False(t, r.Bad)
	require.Zero(t, r.AtMost(8))
	require.True(t, r.Bad)
	require.Empty(t, r.Rest)
	require.Zero(t, r.Next())
	require.Nil(t, r.Take(0))

	r = varint.Reader{Rest: []byte{1}}
	require.Nil(t, r.Take(2))
	require.True(t, r.Bad)
}
