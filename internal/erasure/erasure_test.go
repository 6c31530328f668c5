package erasure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/summarize"
)

// A summary of a fork covers the messages before the fork, and none that the fork does not have.
func TestSummariesOfForks(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{Title: "shared…"})
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	spans, err := main.Extend(t.Context(), lineage.User("shared words"), lineage.User("only in main"))
	require.NoError(t, err)
	fork, err := thread.CreateBranch(t.Context(), "fork", lineage.BranchOptions{At: spans[0]})
	require.NoError(t, err)
	own, err := fork.Extend(t.Context(), lineage.User("only in the fork"), lineage.User("shared words"))
	require.NoError(t, err)
	summary, err := fork.Summarize(t.Context(), summarize.Extractive{}, lineage.SummarizeOptions{})
	require.NoError(t, err)
	for span, want := range map[lineage.SpanRef]struct {
		uses, titles int
		summaries    []string
	}{
		spans[0]: {2, 1, []string{summary.Content.String()}},
		spans[1]: {1, 0, []string{}},
		own[0]:   {1, 0, []string{summary.Content.String()}},
	} {
		entries, err := store.Span(t.Context(), span)
		require.NoError(t, err)
		plan, err := OfMessage(t.Context(), store, entries[0])
		require.NoError(t, err)
		require.Len(t, plan.Erased, 1)
		require.Empty(t, plan.Stays)
		r := plan.Erased[0]
		require.Equal(t, want.uses, r.Uses)
		require.Len(t, r.Titles, want.titles)
		require.Equal(t, want.summaries, r.Summaries)
	}
}
