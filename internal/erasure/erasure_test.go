package erasure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/summarize"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
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

// The summaries of random forks and ranges are those whose ranges, when read, have the content.
func TestSummariesOfRandomForks(t *testing.T) {
	former := summariesAtOnce
	defer func() { summariesAtOnce = former }()
	defer campaign.Checks(50)()
	rapid.Check(t, func(t *rapid.T) {
		summariesAtOnce = rapid.IntRange(1, 5).Draw(t, "at once")
		store, err := lineage.OpenMemory(t.Context(), lineage.Options{})
		require.NoError(t, err)
		defer store.Close()
		below := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
		var contexts []*lineage.Context
		for range 1 + below(3, "threads") {
			thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
			require.NoError(t, err)
			active, err := thread.Active(t.Context())
			require.NoError(t, err)
			contexts = append(contexts, active)
		}
		alone, err := store.NewContext(t.Context(), lineage.ContextOptions{})
		require.NoError(t, err)
		contexts = append(contexts, alone)
		said := make(map[lineage.ContentID]bool)
		for range 5 + below(30, "steps") {
			c := contexts[below(len(contexts), "context")]
			length, err := c.Len(t.Context())
			require.NoError(t, err)
			switch below(4, "step") {
			case 0, 1:
				spans, err := c.Extend(t.Context(), lineage.User(fmt.Sprint("words ", below(4, "words"))))
				require.NoError(t, err)
				entries, err := store.Span(t.Context(), spans[0])
				require.NoError(t, err)
				said[entries[0].Content] = true
			case 2:
				fork, err := c.Fork(t.Context(), lineage.ForkOptions{})
				require.NoError(t, err)
				contexts = append(contexts, fork)
			case 3:
				if length == 0 {
					continue
				}
				from := 1 + uint64(below(int(length), "from"))
				to := from + uint64(below(int(length-from+1), "to"))
				text := summarizer(fmt.Sprint("summary ", below(6, "summary")))
				_, err := c.Summarize(t.Context(), text, lineage.SummarizeOptions{Range: lineage.Window{From: from, To: to}})
				require.NoError(t, err)
			}
		}
		if below(2, "erase") == 0 {
			if err := store.Erase(t.Context(), content.Sum([]byte("summary 0"))); !errors.Is(err, lineage.ErrNotFound) {
				require.NoError(t, err)
			}
		}
		want := make(map[lineage.ContentID]map[string]bool)
		for s, err := range store.Summaries(t.Context(), lineage.ThreadQuery{}) {
			require.NoError(t, err)
			for e, err := range store.History(t.Context(), s.To, lineage.Window{From: s.First}) {
				require.NoError(t, err)
				if want[e.Content] == nil {
					want[e.Content] = make(map[string]bool)
				}
				if !s.Erased {
					want[e.Content][s.Content.String()] = true
				}
			}
		}
		for id := range said {
			plan, err := OfContent(t.Context(), store, id)
			require.NoError(t, err)
			require.ElementsMatch(t, slices.Collect(maps.Keys(want[id])), plan.Erased[0].Summaries)
		}
	})
}

// The ranges of summaries that lie in many runs are found in a time that grows with the runs in them, and not with their square.
func TestSummariesOfDeepForks(t *testing.T) {
	const depth, count = 150, 50
	store := lineagetest.New(t, lineage.Options{})
	c, err := store.NewContext(t.Context(), lineage.ContextOptions{})
	require.NoError(t, err)
	for i := range depth {
		_, err := c.Extend(t.Context(), lineage.User(fmt.Sprint(i)))
		require.NoError(t, err)
		fork, err := c.Fork(t.Context(), lineage.ForkOptions{})
		require.NoError(t, err)
		_, err = c.Extend(t.Context(), lineage.User("elsewhere"))
		require.NoError(t, err)
		c = fork
	}
	for i := range count {
		_, err := c.Summarize(t.Context(), summarizer(fmt.Sprint("summary ", i)), lineage.SummarizeOptions{Range: lineage.Window{From: 1, To: depth}})
		require.NoError(t, err)
	}
	var summaries []*structure.Summary
	s, err := store.View().Snapshot(t.Context())
	require.NoError(t, err)
	defer s.Close()
	for summary, err := range s.Summaries(t.Context(), lineage.ContextID{}) {
		require.NoError(t, err)
		summaries = append(summaries, summary)
	}
	require.Len(t, summaries, count)
	var ranges [][]structure.Segment
	allocated := structuretest.Allocated(func() { ranges, err = rangesOf(t.Context(), s, summaries) })
	require.NoError(t, err)
	total := 0
	for _, segments := range ranges {
		total += len(segments)
	}
	require.Equal(t, depth*count, total)
	require.Less(t, allocated, uint64(total*1024))
}

// summarizer returns a text as the summary of anything.
type summarizer string

func (s summarizer) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: string(s)}, nil
}
