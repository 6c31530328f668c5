package content

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTreeShape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := make(chunkMap)
		n := rapid.IntRange(1, 3000).Draw(t, "chunks")
		root := store.build(t, tinyChunks(n))
		require.Equal(t, int64(4*n), root.Size)
		requireShape(t, store, root.subtree(), true)
	})
}

// requireShape checks that every node ends exactly where the keys of its children
// require. Only the last node of a level may end early.
func requireShape(t require.TestingT, store chunkMap, s subtree, last bool) {
	if s.height == 0 {
		return
	}
	children, err := s.fetchChildren(context.Background(), store.get, nil)
	require.NoError(t, err)
	for i := range children {
		ends := endsNode(i+1, children[i].key)
		if i < len(children)-1 {
			require.False(t, ends)
		} else {
			require.True(t, ends || last)
		}
		below := subtree{key: children[i].key, height: s.height - 1, end: children[i].size}
		requireShape(t, store, below, last && i == len(children)-1)
	}
}

// Equal chunks either never or always end a node.
func TestTreeOfEqualChunksEnds(t *testing.T) {
	var never, always []byte
	for b := range 1 << 16 {
		chunk := []byte{byte(b), byte(b >> 8)}
		if endsNode(minChildren, KeyOf(chunk)) {
			always = chunk
		} else {
			never = chunk
		}
	}
	for _, chunk := range [][]byte{never, always} {
		store := make(chunkMap)
		root := store.build(t, func(yield func([]byte) bool) {
			for range 20_000 {
				if !yield(chunk) {
					return
				}
			}
		})
		require.Equal(t, int64(40_000), root.Size)
		require.Less(t, len(store), 30, "equal nodes are one")
		require.LessOrEqual(t, root.Height, uint8(4))
		n, err := store.open(root).WriteTo(io.Discard)
		require.NoError(t, err)
		require.Equal(t, root.Size, n)
	}
}

func TestTreeBuilderRefuses(t *testing.T) {
	for _, chunk := range [][]byte{nil, make([]byte, MaxChunk+1)} {
		b := NewTreeBuilder(make(chunkMap).put)
		err := b.Add(chunk)
		require.Error(t, err)
		require.Equal(t, err, b.Add([]byte("good")), "a failed builder keeps failing")
		_, again := b.Finish()
		require.Equal(t, err, again)
	}

	b := NewTreeBuilder(make(chunkMap).put)
	root, err := b.Finish()
	require.NoError(t, err)
	require.True(t, root.IsZero())
	require.ErrorIs(t, b.Add([]byte("late")), errFinished)
	_, err = b.Finish()
	require.ErrorIs(t, err, errFinished)

}

// If any put fails, of a chunk, an inner node or a final node, the builder
// returns the error, puts nothing more and returns no root.
func TestTreeBuilderPassesErrorsOn(t *testing.T) {
	const chunks = 700
	boom := errors.New("boom")
	store := make(chunkMap)
	root := store.build(t, tinyChunks(chunks))
	require.Greater(t, root.Height, uint8(1))
	for fail := range len(store) {
		puts := 0
		b := NewTreeBuilder(func(Key, []byte) error {
			if puts++; puts > fail {
				return boom
			}
			return nil
		})
		for chunk := range tinyChunks(chunks) {
			if b.Add(chunk) != nil {
				break
			}
		}
		got, err := b.Finish()
		require.ErrorIs(t, err, boom)
		require.True(t, got.IsZero())
		require.Equal(t, fail+1, puts)
	}
}
