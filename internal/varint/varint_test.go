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

func TestSigned(t *testing.T) {
	for _, v := range []int64{0, -1, 1, 63, -64, 64, -65, 1 << 40, 1<<63 - 1, -1 << 63} {
		b := binary.AppendVarint(nil, v)
		r := varint.Reader{Rest: b}
		require.Equal(t, v, r.Signed())
		require.False(t, r.Bad)
		require.Empty(t, r.Rest)
		require.Equal(t, v, varint.Unzigzag(varint.Zigzag(v)))
		require.Equal(t, len(b), varint.Len(varint.Zigzag(v)))
		r = varint.Reader{Rest: b[:len(b)-1]}
		require.Zero(t, r.Signed())
		require.True(t, r.Bad)
	}
}
