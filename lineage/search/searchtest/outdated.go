package searchtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

// Outdated requires that a search with little time says what the index does not have, and finds nothing that an empty store
// had before.
func Outdated(t testing.TB, store *lineage.Store, x *search.Index) {
	say := func(text string) *lineage.Thread {
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
		require.NoError(t, err)
		c, err := thread.Active(bg)
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.User(text))
		require.NoError(t, err)
		return thread
	}
	gone := say("one walrus")
	require.NoError(t, x.Update(bg))
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	last := say("another walrus")
	require.NoError(t, gone.Delete(bg))
	var behind uint64
	find := func(q search.Query) (found int) {
		t.Helper()
		behind, q.Text, q.Behind = 0, "walrus", func(commits uint64, _ error) { behind = commits }
		hits, err := x.Search(bg, q)
		require.NoError(t, err)
		return len(hits)
	}
	require.Zero(t, find(search.Query{UpdateFor: 1}))
	require.EqualValues(t, 2, behind, "a transaction of one commit")
	require.Equal(t, 1, find(search.Query{UpdateFor: 1}))
	require.EqualValues(t, 1, behind)
	require.Zero(t, find(search.Query{UpdateFor: 1, Thread: gone.ID()}))
	require.Zero(t, behind)
	require.Equal(t, 1, find(search.Query{UpdateFor: 1, Thread: last.ID()}))
	say("a third walrus")
	require.Equal(t, 2, find(search.Query{}))
	require.Zero(t, behind)
}
