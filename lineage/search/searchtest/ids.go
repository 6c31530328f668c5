package searchtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/structure"
)

// EqualIDs requires that an empty store is searched as it should be when a run, a context, checkpoints and summaries have one
// id. Ids are chosen by whoever makes a commit.
func EqualIDs(t testing.TB, store *lineage.Store, x *search.Index) {
	at := time.UnixMilli(1)
	id := structure.NewID[structure.RunID]()
	engine := write.Of(store).Engine()
	apply := func(records ...structure.Record) {
		t.Helper()
		_, err := engine.Apply(bg, &structure.Commit{Time: at, Records: records}, backend.Options{})
		require.NoError(t, err)
	}
	block := func(text string) *structure.Block {
		return structure.NewBlock("text/plain", content.BlockOrigin{}, at, []byte(text))
	}
	// said makes a thread with two messages, which a context and a checkpoint see.
	said := func(run structure.RunID, context structure.ContextID, text, last string) structure.ThreadID {
		thread := structure.NewID[structure.ThreadID]()
		one, two := block(text), block(last)
		span := func(seq uint64, b *structure.Block) *structure.Span {
			return &structure.Span{Ref: structure.SpanRef{Run: run, Seq: seq}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: b.ID}}}
		}
		end := structure.SpanRef{Run: run, Seq: 2}
		apply(&structure.Thread{ID: thread, CreatedAt: at}, one, two, &structure.Run{ID: run, Home: structure.Home{Thread: thread}}, span(1, one), span(2, two),
			&structure.Context{ID: context, Thread: thread, Tip: structure.SpanRef{Run: run, Seq: 1}, CreatedAt: at},
			&structure.Checkpoint{ID: structure.CheckpointID(id), Thread: thread, Name: "here", Span: end, CreatedAt: at})
		return thread
	}
	summarize := func(parent structure.ContextID, text string) {
		b := block(text)
		apply(b, &structure.Summary{ID: structure.SummaryID(id), Context: parent, Content: b.ID, CreatedAt: at})
	}
	other := structure.NewID[structure.ContextID]()
	first := said(id, structure.ContextID(id), "a walrus", "a tapir")
	second := said(structure.NewID[structure.RunID](), other, "a numbat", "an okapi")
	summarize(structure.ContextID(id), "of a quokka")
	summarize(other, "of a bilby")
	check := func(want map[string]structure.ThreadID) {
		t.Helper()
		for text, thread := range want {
			hits, err := x.Search(bg, search.Query{Text: text})
			require.NoError(t, err)
			var got []string
			for _, h := range hits {
				got = append(got, fmt.Sprint(h.Text, h.Threads, h.Contexts))
			}
			if thread.IsZero() {
				require.Empty(t, got, text)
				continue
			}
			require.Len(t, got, 1, text)
			require.Contains(t, got[0], text)
			require.Contains(t, got[0], fmt.Sprint([]structure.ThreadID{thread}, []structure.ContextID{}))
		}
	}
	none := structure.ThreadID{}
	check(map[string]structure.ThreadID{"walrus": first, "tapir": first, "numbat": second, "okapi": second, "quokka": first, "bilby": second})
	summarize(other, "of an emu") // a second one of that context with the id
	apply(&structure.Deletion{Subject: structure.KindCheckpoint, Thread: second, Name: "here"})
	check(map[string]structure.ThreadID{"walrus": first, "tapir": first, "numbat": second, "okapi": none, "quokka": first, "bilby": second})
	apply(&structure.Deletion{Subject: structure.KindThread, Thread: first})
	check(map[string]structure.ThreadID{"walrus": none, "tapir": none, "numbat": second, "quokka": none, "bilby": second})
}
