package projecttest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
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
func testSummaries(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	rows := func(want int, where string) {
		t.Helper()
		require.Equal(t, want, count(t, database, `SELECT COUNT(*) FROM "lineage_summaries" WHERE `+where), where)
	}
	follow := func(want int) {
		t.Helper()
		s.project(t, store, db)
		rows(want, `1 = 1`)
		requireSame(t, s.rebuilt(t, store, false), dump(t, database, false))
		for d, err := range project.Compare(bg, db, store, project.CompareOptions{}) {
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
	numbers := &numbered{}
	summarize := func(c *lineage.Context, o lineage.SummarizeOptions) *lineage.SummaryInfo {
		t.Helper()
		made, err := c.Summarize(bg, numbers, o)
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
		require.Equal(t, want, count(t, database, fmt.Sprintf(`SELECT COUNT(*) FROM "contexts" WHERE "id" = '%v' AND "summary_embedding" IS NOT NULL`, fork.ID())))
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

// requireSummaries compares the summaries of branches in the database with those in the store.
func requireSummaries(t require.TestingT, store *lineage.Store, db *sqladapter.DB) {
	want, got := chat.On(store), sqlchat.On(db)
	for info, err := range want.ListChats(bg, chat.ListOptions{}) {
		require.NoError(t, err)
		branches, err := want.ListBranches(bg, info.ID)
		require.NoError(t, err)
		for _, b := range branches {
			now, err := want.Summaries(bg, info.ID, b.ID)
			require.NoError(t, err)
			found, err := got.Summaries(bg, info.ID, b.ID)
			require.NoError(t, err)
			require.Equal(t, now, found, "branch %q of %s", b.Name, info.ID)
		}
	}
}

// testSummariesOfBranches opens an engine on a projection. It sends the summaries that one on the store sends:
// those of the branch and of the contexts that it was forked from, but not through a remnant, and none of a history that
// the branch has left.
func testSummariesOfBranches(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	chats := chat.On(store)
	var messages []chat.Message
	for i := range 6 {
		messages = append(messages, say(fmt.Sprint("m", i), fmt.Sprint("message ", i)))
	}
	converse(t, chats, "a", messages...)
	a, err := store.FindThread(bg, "a")
	require.NoError(t, err)
	main, err := a.Active(bg)
	require.NoError(t, err)
	numbers := &numbered{}
	summarize := func(c *lineage.Context, o lineage.SummarizeOptions) {
		t.Helper()
		_, err := c.Summarize(bg, numbers, o)
		require.NoError(t, err)
	}
	summarize(main, lineage.SummarizeOptions{Range: lineage.Window{To: 2}})
	b, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: "b", UserID: "ada"})
	require.NoError(t, err)
	fork, err := main.Fork(bg, lineage.ForkOptions{Thread: b.ID()})
	require.NoError(t, err)
	summarize(fork, lineage.SummarizeOptions{Range: lineage.Window{From: 3, To: 4}})
	below, err := fork.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	require.NoError(t, b.NameBranch(bg, "below", below))
	check := func(want ...string) {
		t.Helper()
		s.same(t, store, database, db)
		requireSummaries(t, store, db)
		var prompts [2]string
		for i, on := range []chat.Store{chats, sqlchat.On(db)} {
			e, err := engine.Open(bg, on, engine.Options{ChatID: "b", UserID: "ada", Branch: "below"})
			require.NoError(t, err)
			resolved, err := e.Resolve(bg, engine.ResolveOptions{Last: 2})
			require.NoError(t, err)
			prompts[i] = resolved.SystemPrompt
		}
		require.Equal(t, prompts[0], prompts[1])
		for _, text := range want {
			require.Contains(t, prompts[1], text)
		}
		require.Equal(t, len(want), strings.Count(prompts[1], "summary "))
	}
	check("summary 1", "summary 2")
	require.NoError(t, fork.Delete(bg))
	check()
	summarize(below, lineage.SummarizeOptions{Range: lineage.Window{To: 3}})
	check("summary 3")
	entries, err := below.All(bg)
	require.NoError(t, err)
	require.NoError(t, below.MoveTo(bg, entries[4].Span, "rewind"))
	check("summary 3")
	require.NoError(t, below.MoveTo(bg, entries[1].Span, "rewind"))
	check()
	exec(t, database, `UPDATE "lineage_projection" SET "format" = 8`)
	other, err := sqlchat.On(db).Branch(bg, "a", "main")
	require.NoError(t, err)
	none, err := sqlchat.On(db).Summaries(bg, "a", other.ID)
	require.NoError(t, err)
	require.Empty(t, none, "the database was made by another version")
}
