package projecttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/structure"
)

// numbered summarizes by numbers.
type numbered struct{ n int }

func (s *numbered) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	s.n++
	return lineage.SummaryText{Text: fmt.Sprint("summary ", s.n), Model: "short"}, nil
}

// testSummaries follows summaries of ranges and of summaries.
//
// feature: lineage/projected-summaries
func (s *suite) testSummaries(t *testing.T) {
	store, place := newStore(t), s.New(t)
	db := s.open(t, place)
	defer db.Close()
	rows := func(want int, where string) {
		t.Helper()
		require.Equal(t, want, count(t, place, `SELECT COUNT(*) FROM "lineage_summaries" WHERE `+where), where)
	}
	follow := func(want int) {
		t.Helper()
		s.project(t, store, db)
		rows(want, `1 = 1`)
		requireSame(t, s.rebuilt(t, store, false), dump(t, place, false))
		for d, err := range sqladapter.Compare(bg, db, store, sqladapter.CompareOptions{}) {
			require.NoError(t, err)
			require.Fail(t, d.String())
		}
	}
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "a", UserID: "ada"})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	refs, err := main.Extend(bg, lineage.User("one"), lineage.Assistant("two"), lineage.User("three"), lineage.Assistant("four"))
	require.NoError(t, err)
	by := &numbered{}
	summarize := func(c *lineage.Context, o lineage.SummarizeOptions) *lineage.SummaryInfo {
		t.Helper()
		made, err := c.Summarize(bg, by, o)
		require.NoError(t, err)
		return made
	}
	embed := func(context.Context, string) ([]float32, error) { return []float32{1}, nil }
	first := summarize(main, lineage.SummarizeOptions{Range: lineage.Window{To: 2}})
	follow(1)
	second := summarize(main, lineage.SummarizeOptions{Range: lineage.Window{From: 3, To: 4}, Embed: embed})
	both := summarize(main, lineage.SummarizeOptions{Parts: []structure.SummaryID{first.ID, second.ID}})
	follow(3)
	rows(1, fmt.Sprintf(`"id" = '%v' AND "level" = 0 AND "after_span_id" IS NULL AND "to_span_id" = '%v' AND "parts" IS NULL AND "model" = 'short' AND "embedding" IS NULL`, first.ID, refs[1]))
	rows(1, fmt.Sprintf(`"id" = '%v' AND "after_span_id" = '%v' AND "to_span_id" = '%v' AND "embedding" IS NOT NULL`, second.ID, refs[1], refs[3]))
	rows(1, fmt.Sprintf(`"id" = '%v' AND "level" = 1 AND "parts" = '["%v","%v"]' AND "summary_text" = 'summary 3'`, both.ID, first.ID, second.ID))

	// A context that comes with a summary, one that loses one, and an erased text.
	fork, err := main.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	last := summarize(fork, lineage.SummarizeOptions{Whole: true, Embed: embed})
	require.NoError(t, main.DeleteSummary(bg, both.ID))
	require.NoError(t, store.Erase(bg, first.Content))
	follow(3)
	rows(1, fmt.Sprintf(`"id" = '%v' AND "summary_text" IS NULL`, first.ID))
	rows(1, fmt.Sprintf(`"context_id" = '%v' AND "summary_text" = 'summary 4'`, fork.ID()))

	// The embedding goes with the text, of the summary and of the context, and comes back with it.
	embedded := func(want int) {
		t.Helper()
		rows(want, fmt.Sprintf(`"id" = '%v' AND "embedding" IS NOT NULL AND "summary_text" = 'summary 4'`, last.ID))
		require.Equal(t, want, count(t, place, fmt.Sprintf(`SELECT COUNT(*) FROM "contexts" WHERE "id" = '%v' AND "summary_embedding" IS NOT NULL`, fork.ID())))
	}
	embedded(1)
	require.NoError(t, store.Erase(bg, last.Content))
	follow(3)
	embedded(0)
	rows(1, fmt.Sprintf(`"id" = '%v' AND "embedding" IS NULL AND "summary_text" IS NULL`, last.ID))
	_, err = main.Extend(bg, lineage.User("summary 4"))
	require.NoError(t, err)
	follow(3)
	embedded(1)

	_, err = main.Extend(bg, lineage.User("five"))
	require.NoError(t, err)
	require.NoError(t, fork.Delete(bg))
	follow(2)
	require.NoError(t, thread.Delete(bg))
	follow(0)
}
