package bundle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

// TestKept copies messages that are in no context, of a thread that keeps its runs.
func TestKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := newMachine(t), newMachine(t)
		defer a.close(t)
		defer b.close(t)
		thread, main := newThread(t, a.s, "kept")
		at := []lineage.SpanRef{{}, say(t, main, "on main")}
		if rapid.Bool().Draw(t, "thread is there") {
			bring(t, b.s, writeBundle(t, a.s, bundle.WriteOptions{}))
		}
		if rapid.Bool().Draw(t, "renamed there") {
			if there, err := b.s.Thread(bg, thread.ID()); err == nil {
				require.NoError(t, there.Update(bg, func(i *lineage.ThreadInfo) error { i.Title = "renamed"; return nil }))
			}
		}
		keep(t, a.s, thread.ID())
		n := rapid.IntRange(1, 12).Draw(t, "messages")
		for i := range n {
			parent := rapid.SampledFrom(at).Draw(t, "parent")
			at = append(at, hang(t, a.s, thread.ID(), parent, fmt.Sprint("m", i)))
		}
		o := bundle.WriteOptions{}
		if rapid.Bool().Draw(t, "one thread") {
			o.Threads = []lineage.ThreadID{thread.ID()}
		}
		theirs := writeBundle(t, a.s, o)
		bring(t, b.s, theirs)
		_, err := b.s.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1, Now: time.Now().Add(time.Hour)})
		require.NoError(t, err)
		there, err := b.s.Thread(bg, thread.ID())
		require.NoError(t, err)
		for i := range n {
			e, err := there.Find(bg, fmt.Sprint("m", i))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint("m", i), e.Excerpt())
			one, err := write.Of(a.s).Engine().Digest(bg, at[i+2])
			require.NoError(t, err)
			other, err := write.Of(b.s).Engine().Digest(bg, e.Span)
			require.NoError(t, err)
			require.Equal(t, one, other)
		}
		bringAgain(t, b.s, theirs)
	})
}

// keep makes a thread keep its runs.
func keep(t tester, s *lineage.Store, id lineage.ThreadID) {
	t.Helper()
	got, err := write.Of(s).Engine().Thread(bg, id)
	require.NoError(t, err)
	got.Keeps = true
	_, err = write.Of(s).Engine().Apply(bg, &structure.Commit{Time: got.UpdatedAt, Records: []structure.Record{got}}, backend.Options{})
	require.NoError(t, err)
}

// hang adds a message to a thread after a span, in no context.
func hang(t tester, s *lineage.Store, thread lineage.ThreadID, after lineage.SpanRef, text string) lineage.SpanRef {
	t.Helper()
	got, err := write.Of(s).Engine().Thread(bg, thread)
	require.NoError(t, err)
	block := structure.NewBlock(content.TypeText, content.BlockOrigin{}, got.CreatedAt, []byte(text))
	run := &structure.Run{ID: structure.NewID[structure.RunID](), Parent: after, Home: got.Home()}
	span := &structure.Span{Ref: lineage.SpanRef{Run: run.ID, Seq: 1}, Usages: []structure.Usage{{
		Kind: structure.MessageUsage, Role: "user", Content: block.ID, SourceID: text, Lookup: 1, CreatedAt: got.CreatedAt,
	}}}
	_, err = write.Of(s).Engine().Apply(bg, &structure.Commit{Time: got.CreatedAt, Records: []structure.Record{block, run, span}}, backend.Options{})
	require.NoError(t, err)
	return span.Ref
}
