package content

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodeRoundTrip(t *testing.T) {
	children := []child{{Key{1}, 1}, {Key{2}, 300}, {Key{3}, MaxChunk}}
	b := appendNode(nil, 1, children)
	got, err := decodeNode([]child{{Key{9}, 9}}, b, 1, 301+MaxChunk)
	require.NoError(t, err)
	require.Equal(t, append([]child{{Key{9}, 9}}, children...), got)
}

func TestDecodeNodeRefuses(t *testing.T) {
	good := []child{{Key{1}, 100}, {Key{2}, 200}}
	node := func(edit func(b []byte) []byte) []byte { return edit(appendNode(nil, 1, good)) }
	full := slices.Repeat([]child{{Key{1}, 1}}, maxChildren+1)
	tests := []struct {
		name   string
		b      []byte
		height uint8
		size   int64
	}{
		{"nothing", nil, 1, 300},
		{"version only", []byte{nodeVersion}, 1, 300},
		{"header only", []byte{nodeVersion, 1}, 1, 300},
		{"another version", node(func(b []byte) []byte { b[0]++; return b }), 1, 300},
		{"another height", node(func(b []byte) []byte { b[1]++; return b }), 1, 300},
		{"height of a chunk", node(func(b []byte) []byte { b[1] = 0; return b }), 0, 300},
		{"no children", appendNode(nil, 1, nil), 1, 0},
		{"too many children", appendNode(nil, 1, full), 1, maxChildren + 1},
		{"fewer children than counted", node(func(b []byte) []byte { b[2]++; return b }), 1, 300},
		{"more children than counted", node(func(b []byte) []byte { b[2]--; return b }), 1, 100},
		{"a byte behind", node(func(b []byte) []byte { return append(b, 0) }), 1, 300},
		{"a byte short", node(func(b []byte) []byte { return b[:len(b)-1] }), 1, 300},
		{"a key cut short", node(func(b []byte) []byte { return b[:20] }), 1, 300},
		{"a long count", node(func(b []byte) []byte { return slices.Insert(slices.Replace(b, 2, 3, 0x82), 3, 0) }), 1, 300},
		{"a long size", node(func(b []byte) []byte { b[len(b)-1] |= 0x80; return append(b, 0) }), 1, 300},
		{"an endless size", node(func(b []byte) []byte { return append(b[:len(b)-2], slices.Repeat([]byte{0xff}, 11)...) }), 1, 300},
		{"an empty child", appendNode(nil, 1, []child{{Key{1}, 300}, {Key{2}, 0}}), 1, 300},
		{"a chunk too large", appendNode(nil, 1, []child{{Key{1}, MaxChunk + 1}}), 1, MaxChunk + 1},
		{"larger than said", appendNode(nil, 1, good), 1, 299},
		{"smaller than said", appendNode(nil, 1, good), 1, 301},
		{"a sum that overflows", appendNode(nil, 2, []child{{Key{1}, math.MaxInt64}, {Key{2}, math.MaxInt64}}), 2, -2},
		{"a negative size", appendNode(nil, 2, []child{{Key{1}, -1}, {Key{2}, 301}}), 2, 300},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decodeNode(nil, tt.b, tt.height, tt.size)
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
}

func FuzzDecodeNode(f *testing.F) {
	add := func(height uint8, size int64, children ...child) {
		f.Add(appendNode(nil, height, children), height, size)
	}
	add(1, 300, child{Key{1}, 100}, child{Key{2}, 200})
	add(2, math.MaxInt64, child{Key{1}, 1 << 40}, child{Key{2}, math.MaxInt64 - 1<<40})
	add(1, maxChildren, slices.Repeat([]child{{Key{1}, 1}}, maxChildren)...)
	add(2, -2, child{Key{1}, math.MaxInt64}, child{Key{2}, math.MaxInt64})
	f.Add([]byte{nodeVersion, 1, 0xff, 0xff, 0xff, 0xff, 0x0f}, uint8(1), int64(math.MaxInt64))
	f.Add([]byte{}, uint8(0), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, height uint8, size int64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		children, err := decodeNode(nil, b, height, size)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		require.Equal(t, b, appendNode(nil, height, children), "a node has one form")
		require.LessOrEqual(t, len(children), maxChildren)
		for _, c := range children {
			require.Positive(t, c.size)
			size -= c.size
		}
		require.Zero(t, size)
	})
}
