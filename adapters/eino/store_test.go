package eino

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cloudwego/eino/compose"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

func open(t testing.TB, dir string) *lineage.Store {
	store, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// approving is a graph that asks before it answers.
func approving(t testing.TB, store compose.CheckPointStore) compose.Runnable[string, string] {
	g := compose.NewGraph[string, string]()
	for name, word := range map[string]string{"plan": "planned", "book": "booked"} {
		require.NoError(t, g.AddLambdaNode(name, compose.InvokableLambda(func(_ context.Context, in string) (string, error) { return in + ", " + word, nil })))
	}
	for _, edge := range [][2]string{{compose.START, "plan"}, {"plan", "book"}, {"book", compose.END}} {
		require.NoError(t, g.AddEdge(edge[0], edge[1]))
	}
	r, err := g.Compile(t.Context(), compose.WithCheckPointStore(store), compose.WithInterruptBeforeNodes([]string{"book"}))
	require.NoError(t, err)
	return r
}

// A graph that was interrupted goes on in another process, and in a fork.
func TestGraph(t *testing.T) {
	dir := t.TempDir()
	first := New(open(t, dir), nil)
	_, err := approving(t, first).Invoke(t.Context(), "a trip", compose.WithCheckPointID("trip/1"))
	_, interrupted := compose.ExtractInterruptInfo(err)
	require.True(t, interrupted, "%v", err)
	require.NoError(t, first.Fork(t.Context(), "trip/1", "fork", 0))
	require.ErrorIs(t, first.Fork(t.Context(), "trip/1", "fork", 0), lineage.ErrExists)

	second := New(open(t, dir), nil) // a guest of the first
	for _, id := range []string{"trip/1", "fork"} {
		said, err := approving(t, second).Invoke(t.Context(), "not read", compose.WithCheckPointID(id))
		require.NoError(t, err)
		require.Equal(t, "a trip, planned, booked", said)
	}
}

func TestCheckPoints(t *testing.T) {
	dir := t.TempDir()
	stores := []*CheckPointStore{New(open(t, dir), nil), New(open(t, dir), nil)}
	other := New(stores[0].store, &Options{Prefix: "eino-2/"})
	body := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	ids := []string{"a", "a/b", "../a", "%2e%2e", " é\x01", strings.Repeat("x", 500)}
	for i, id := range ids {
		got, found, err := stores[1].Get(t.Context(), id)
		require.NoError(t, err)
		require.False(t, found, "%q", id)
		require.Nil(t, got)
		for n := range 3 {
			require.NoError(t, stores[n%2].Set(t.Context(), id, fmt.Appendf(body, "%d %d", i, n)))
		}
	}
	for i, id := range ids {
		got, found, err := stores[1].Get(t.Context(), id)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, fmt.Appendf(body, "%d 2", i), got)
		_, found, err = other.Get(t.Context(), id)
		require.NoError(t, err)
		require.False(t, found)
	}
	require.NoError(t, stores[0].Set(t.Context(), "empty", nil))
	got, found, err := stores[1].Get(t.Context(), "empty")
	require.NoError(t, err)
	require.True(t, found)
	require.Empty(t, got)

	// An earlier one, which outlives its source.
	require.NoError(t, stores[0].Fork(t.Context(), "a", "earlier", 2))
	require.ErrorIs(t, stores[0].Fork(t.Context(), "a", "none", 3), lineage.ErrNotFound)
	require.ErrorIs(t, stores[0].Fork(t.Context(), "none", "x", 0), lineage.ErrNotFound)
	require.NoError(t, stores[1].Delete(t.Context(), "a"))
	require.NoError(t, stores[1].Delete(t.Context(), "a"))
	_, found, err = stores[0].Get(t.Context(), "a")
	require.NoError(t, err)
	require.False(t, found)
	got, _, err = stores[0].Get(t.Context(), "earlier")
	require.NoError(t, err)
	require.Equal(t, fmt.Appendf(body, "0 0"), got)

	for _, id := range []string{"", "\xff"} {
		require.ErrorIs(t, stores[0].Set(t.Context(), id, nil), lineage.ErrInvalid)
		_, _, err := stores[0].Get(t.Context(), id)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
	ada, bob := New(stores[0].store, &Options{UserID: "ada"}), New(stores[0].store, &Options{UserID: "bob"})
	require.NoError(t, ada.Set(t.Context(), "hers", body))
	require.ErrorIs(t, bob.Set(t.Context(), "hers", body), lineage.ErrOtherUser)
	_, _, err = bob.Get(t.Context(), "hers")
	require.ErrorIs(t, err, lineage.ErrOtherUser)
	require.ErrorIs(t, bob.Delete(t.Context(), "hers"), lineage.ErrOtherUser)
}

// Checkpoints of two processes at the same time are all kept, and the last counts.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var wait sync.WaitGroup
	stores := []*CheckPointStore{New(open(t, dir), nil), New(open(t, dir), nil)}
	for i := range 20 {
		wait.Go(func() { require.NoError(t, stores[i%2].Set(t.Context(), "one", fmt.Appendf(nil, "%d", i))) })
	}
	wait.Wait()
	_, c, err := stores[0].main(t.Context(), "one")
	require.NoError(t, err)
	last, err := c.Last(t.Context(), 100)
	require.NoError(t, err)
	require.Len(t, last, 20)
	got, _, err := stores[1].Get(t.Context(), "one")
	require.NoError(t, err)
	said, err := stores[0].store.Body(t.Context(), last[19].Content)
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = b.ReadFrom(said)
	require.NoError(t, err)
	require.Equal(t, b.String(), string(got))
}
