package main_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/titles"
)

// TestTitlesOnEachStore compares the titles of two machines with those that are read of the messages, before and after one is erased.
func TestTitlesOnEachStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, store *lineage.Store) {
		for i := range 6 {
			thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{UserID: []string{"ada", "bob"}[i%2]})
			require.NoError(t, err)
			c, err := thread.Active(t.Context())
			require.NoError(t, err)
			_, err = c.Extend(t.Context(), lineage.System("be brief"), lineage.User(fmt.Sprintf("prompt %d", i)))
			require.NoError(t, err)
		}
		open := func() *titles.Index {
			x, err := titles.Open(t.Context(), store, t.TempDir())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, x.Close()) })
			return x
		}
		machines := []*titles.Index{open(), open()}
		compare := func() (want []string) {
			var threads []titles.Thread
			var ids []lineage.ThreadID
			for l, err := range store.Threads(t.Context(), lineage.ThreadQuery{Oldest: true}) {
				require.NoError(t, err)
				threads, ids = append(threads, titles.Thread{ThreadInfo: l.Was}), append(ids, l.ID())
				title, err := store.ShownTitle(t.Context(), l.Was)
				require.NoError(t, err)
				want = append(want, title)
			}
			found, err := records.OfThreads(t.Context(), store, ids)
			require.NoError(t, err)
			for i, r := range found {
				threads[i].Tip = r.Tip
			}
			for range 2 {
				for _, x := range machines {
					shown, err := x.Shown(t.Context(), threads)
					require.NoError(t, err)
					require.Equal(t, want, shown)
				}
			}
			return want
		}
		require.Contains(t, compare(), "prompt 3")
		require.NoError(t, store.Erase(t.Context(), content.Sum([]byte("prompt 3"))))
		require.NotContains(t, compare(), "prompt 3")
	})
}
