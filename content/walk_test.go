package content

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWalkVisitsAllThatWasPut(t *testing.T) {
	store := make(chunkMap)
	root := store.build(t, tinyChunks(40_000))
	seen := make(map[Key]bool)
	nodes, fetched := 0, 0
	calls := 0
	get := func(ctx context.Context, keys []Key) ([][]byte, error) {
		calls++
		fetched += len(keys)
		return store.get(ctx, keys)
	}
	require.NoError(t, Walk(t.Context(), root, get, func(key Key, isNode bool) error {
		require.False(t, seen[key])
		seen[key] = true
		if isNode {
			nodes++
		}
		_, put := store[key]
		require.True(t, put)
		return nil
	}))
	require.Len(t, seen, len(store))
	require.Equal(t, len(store)-40_000, nodes)
	require.Equal(t, nodes, fetched, "only nodes are fetched, each once")
	require.Less(t, calls, nodes/8, "many at a time")
}

func TestWalkOfLittle(t *testing.T) {
	store := make(chunkMap)
	fail := func(Key, bool) error { return errors.New("visited") }
	require.NoError(t, Walk(t.Context(), Root{}, store.get, fail))

	// A single chunk is visited without being fetched.
	var got []Key
	require.NoError(t, Walk(t.Context(), Root{Key: Key{7}, Size: 5}, store.get, func(key Key, isNode bool) error {
		require.False(t, isNode)
		got = append(got, key)
		return nil
	}))
	require.Equal(t, []Key{{7}}, got)
}

func TestWalkStops(t *testing.T) {
	store := make(chunkMap)
	root := store.build(t, tinyChunks(3000))
	boom := errors.New("boom")
	for _, stop := range []int{1, 2, 3, 500} {
		n := 0
		err := Walk(t.Context(), root, store.get, func(Key, bool) error {
			if n++; n == stop {
				return boom
			}
			return nil
		})
		require.ErrorIs(t, err, boom)
		require.Equal(t, stop, n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Walk(ctx, root, store.get, func(Key, bool) error { return nil }), context.Canceled)

	delete(store, root.Key)
	require.ErrorIs(t, Walk(t.Context(), root, store.get, func(Key, bool) error { return nil }), errAbsent)
}

func TestWalkRefuses(t *testing.T) {
	store := make(chunkMap)
	root := store.build(t, tinyChunks(40))
	none := func(Key, bool) error { return nil }
	high := root
	high.Height = MaxHeight + 1
	require.ErrorIs(t, Walk(t.Context(), high, store.get, none), ErrMalformed)
	large := root
	large.Size++
	require.ErrorIs(t, Walk(t.Context(), large, store.get, none), ErrMalformed)

	// The second reference to a node is not followed, so its size is compared
	// instead.
	twice := store.forge(appendNode(nil, root.Height+1, []child{{root.Key, root.Size}, {root.Key, root.Size - 1}}))
	err := Walk(t.Context(), Root{Key: twice, Height: root.Height + 1, Size: 2*root.Size - 1}, store.get, none)
	require.ErrorIs(t, err, ErrMalformed)

	store[root.Key] = append(store[root.Key], 0)
	require.ErrorIs(t, Walk(t.Context(), root, store.get, none), ErrMismatch)
}

// Walking a tree that refers to one node 512 times on each level takes time
// proportional to the number of nodes.
func TestWalkOfBomb(t *testing.T) {
	store := make(chunkMap)
	root := store.bomb()
	nodes, chunks := 0, 0
	require.NoError(t, Walk(t.Context(), root, store.get, func(_ Key, isNode bool) error {
		if isNode {
			nodes++
		} else {
			chunks++
		}
		return nil
	}))
	require.Equal(t, int(root.Height), nodes)
	require.Equal(t, maxChildren, chunks)
}
