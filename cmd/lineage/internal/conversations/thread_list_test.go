package conversations

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// A limited list does not look at the branches and histories of threads that it leaves out.
func TestLimitedListOfChats(t *testing.T) {
	const chats, branches = 20, 50
	store := lineagetest.New(t, lineage.Options{})
	for i := range chats {
		thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{Title: fmt.Sprint("thread ", i)})
		require.NoError(t, err)
		for k := range branches {
			_, err := thread.CreateBranch(t.Context(), fmt.Sprint("branch ", k), lineage.BranchOptions{})
			require.NoError(t, err)
		}
	}
	counting, out := backendtest.NewCounting(write.Of(store).Engine()), &bytes.Buffer{}
	s := threads.InStore{OpenStore: &app.OpenStore{App: app.New(nil, out, &bytes.Buffer{}, func(string) string { return "" }), Store: lineage.New(counting)}}
	cost := func(limit int) (int64, int) {
		out.Reset()
		n := counting.Cost(func() {
			require.NoError(t, runThreadList(t.Context(), s.App, s, &threads.ThreadListOptions{Limit: limit}))
		})
		require.NoError(t, s.Flush())
		return n, strings.Count(out.String(), "thread ")
	}
	one, shown := cost(1)
	require.Equal(t, 1, shown)
	require.Contains(t, out.String(), fmt.Sprint("thread ", chats-1))
	all, shown := cost(0)
	require.Equal(t, chats, shown)
	require.Greater(t, all-one, int64((chats-1)*branches))
	require.Less(t, one, int64(5*chats+2*branches))
}
