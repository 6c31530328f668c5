package content

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Any damaged byte of any chunk or node is reported by reads.
func TestDamageIsFound(t *testing.T) {
	good := make(chunkMap)
	root := good.build(t, tinyChunks(3000))
	var keys []Key
	nodes := make(map[Key]bool)
	require.NoError(t, Walk(t.Context(), root, good.get, func(key Key, isNode bool) error {
		keys = append(keys, key)
		nodes[key] = isNode
		return nil
	}))
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		damaged := bytes.Clone(good[key])
		switch rapid.IntRange(0, 2).Draw(t, "damage") {
		case 0:
			damaged[rapid.IntRange(0, len(damaged)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			damaged = damaged[:len(damaged)-1]
		case 2:
			damaged = append(damaged, 0)
		}
		_, err := OpenTree(context.Background(), root, good.with(key, damaged)).WriteTo(io.Discard)
		require.ErrorIs(t, err, ErrMismatch)
		var mismatch *MismatchError
		require.ErrorAs(t, err, &mismatch)
		require.Equal(t, key, mismatch.Key)
		require.Equal(t, nodes[key], mismatch.What == "node")
	})
}

// forge stores a node, well-formed or not, under its true key.
func (m chunkMap) forge(b []byte) Key {
	m[KeyOf(b)] = b
	return KeyOf(b)
}

func TestHostileTrees(t *testing.T) {
	store := make(chunkMap)
	chunk := store.forge([]byte("chunk"))
	node := func(height uint8, children ...child) Key { return store.forge(appendNode(nil, height, children)) }
	low := node(1, child{chunk, 5})
	tests := []struct {
		name string
		root Root
	}{
		{"a negative size", Root{Key: chunk, Size: -5}},
		{"an empty body with a key", Root{Key: chunk}},
		{"an empty body with a height", Root{Height: 1}},
		{"a chunk larger than any", Root{Key: chunk, Size: MaxChunk + 1}},
		{"a chunk larger than it is", Root{Key: chunk, Size: 6}},
		{"a chunk smaller than it is", Root{Key: chunk, Size: 4}},
		{"a chunk as a node", Root{Key: chunk, Height: 1, Size: 5}},
		{"a node as a chunk", Root{Key: low, Size: 5}},
		{"a node at another height", Root{Key: low, Height: 2, Size: 5}},
		{"too high", Root{Key: low, Height: MaxHeight + 1, Size: 5}},
		{"the greatest height", Root{Key: low, Height: math.MaxUint8, Size: 5}},
		{"the greatest size", Root{Key: low, Height: 1, Size: math.MaxInt64}},
		{"a node that leaves out a level", Root{Key: node(3, child{low, 5}), Height: 3, Size: 5}},
		{"a node as a chunk in a node", Root{Key: node(1, child{low, 5}), Height: 1, Size: 5}},
		{"a chunk as a node in a node", Root{Key: node(2, child{chunk, 5}), Height: 2, Size: 5}},
		{"a child smaller than said", Root{Key: node(2, child{low, 6}), Height: 2, Size: 6}},
		{"a child larger than said", Root{Key: node(2, child{low, 4}), Height: 2, Size: 4}},
		{"an empty child in front", Root{Key: node(1, child{chunk, 0}, child{chunk, 5}), Height: 1, Size: 5}},
		{"a size that wraps around", Root{Key: node(2, child{low, math.MaxInt64}, child{low, math.MaxInt64}, child{low, 7}), Height: 2, Size: 5}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := io.ReadAll(store.open(tt.root))
			require.ErrorIs(t, err, ErrMalformed)
			_, err = store.open(tt.root).WriteTo(io.Discard)
			require.ErrorIs(t, err, ErrMalformed)
			_, err = store.open(tt.root).ReadAt(make([]byte, 1), 0)
			require.ErrorIs(t, err, ErrMalformed)
		})
	}

	_, err := io.ReadAll(store.open(Root{Key: node(1, child{Key{1}, 5}), Height: 1, Size: 5}))
	require.ErrorIs(t, err, errAbsent)
}

// bomb returns the root of a tree of few nodes for a body of more than 2^62 bytes.
func (m chunkMap) bomb() Root {
	chunk := make([]byte, MaxChunk)
	r := Root{Key: m.forge(chunk), Size: MaxChunk}
	for r.Size < 1<<62 {
		fan := int(min(maxChildren, math.MaxInt64/r.Size))
		r.Height++
		r.Key = m.forge(appendNode(nil, r.Height, slices.Repeat([]child{{r.Key, r.Size}}, fan)))
		r.Size *= int64(fan)
	}
	return r
}

func TestBombIsReadPiecemeal(t *testing.T) {
	store := make(chunkMap)
	root := store.bomb()
	tree := store.open(root)
	n, err := io.Copy(io.Discard, io.LimitReader(tree, 1<<20))
	require.NoError(t, err)
	require.Equal(t, int64(1<<20), n)
	n2, err := tree.ReadAt(make([]byte, 100), root.Size-50)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 50, n2)
}

// FuzzTree opens a forged node above a good tree: its bytes are arbitrary, its key
// is right.
func FuzzTree(f *testing.F) {
	store := make(chunkMap)
	root := store.build(f, tinyChunks(700))
	seed := func(b []byte, height uint8, size int64) { f.Add(b, height, size) }
	top, err := root.subtree().fetchChildren(context.Background(), store.get, nil)
	require.NoError(f, err)
	seed(store[root.Key], root.Height, root.Size)
	seed(store[top[0].key], 1, top[0].size)
	seed(store[root.Key], root.Height+1, root.Size)
	seed(appendNode(nil, 2, slices.Repeat(top[:1], 3)), 2, 3*top[0].size)
	seed(appendNode(nil, 3, []child{{root.Key, root.Size}, {root.Key, root.Size}}), 3, 2*root.Size)
	seed(appendNode(nil, 2, []child{{top[0].key, top[0].size + 1}}), 2, top[0].size+1)
	seed(appendNode(nil, 1, []child{{Key{1}, 0}}), 1, math.MaxInt64)
	seed(nil, 0, 0)
	f.Fuzz(func(t *testing.T, b []byte, height uint8, size int64) {
		forged := Root{Key: KeyOf(b), Height: height, Size: size}
		get := store.with(forged.Key, b)
		const limit = 64 << 10
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n, err := io.Copy(io.Discard, io.LimitReader(OpenTree(t.Context(), forged, get), limit))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20))
		switch {
		case err == nil:
			require.Equal(t, min(size, limit), n)
		case !errors.Is(err, ErrMalformed):
			require.ErrorIs(t, err, errAbsent)
		}
		visited := 0
		err = Walk(t.Context(), forged, get, func(Key, bool) error { visited++; return nil })
		if err == nil && size > 0 {
			require.Positive(t, visited)
		}
		require.LessOrEqual(t, visited, (len(store)+1)*(maxChildren+1))
	})
}
