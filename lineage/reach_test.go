package lineage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A thread reaches what its contexts and checkpoints see, in runs of any thread, and, if it keeps
// its messages, all of its own runs.
func TestReachOf(t *testing.T) {
	store := newStore(t)
	make := func() (*lineage.Thread, *lineage.Context) {
		thread, err := store.CreateThread(bg, lineage.ThreadOptions{})
		require.NoError(t, err)
		main, err := thread.Active(bg)
		require.NoError(t, err)
		return thread, main
	}
	say := func(c *lineage.Context, texts ...string) (last lineage.SpanRef) {
		for _, text := range texts {
			spans, err := c.Extend(bg, lineage.User(text))
			require.NoError(t, err)
			last = spans[0]
		}
		return last
	}
	elsewhere, there := make()
	first := say(there, "one", "two")
	say(there, "not seen")
	thread, main := make()
	fork, err := main.Fork(bg, lineage.ForkOptions{At: first})
	require.NoError(t, err)
	forked := say(fork, "three")
	named := say(main, "named")
	_, err = thread.SetCheckpoint(bg, "here", lineage.CheckpointOptions{})
	require.NoError(t, err)
	require.NoError(t, main.MoveTo(bg, lineage.SpanRef{}, "elsewhere"))
	lost := say(main, "lost", "too")
	require.NoError(t, main.MoveTo(bg, lineage.SpanRef{}, "elsewhere"))

	reach := func(of *lineage.Thread) backend.Reach {
		record, err := write.Of(store).Engine().Thread(bg, of.ID())
		require.NoError(t, err)
		reach, err := backend.ReachOf(bg, write.Of(store).Engine(), record)
		require.NoError(t, err)
		return reach
	}
	got := reach(thread)
	for _, at := range []lineage.SpanRef{first, forked, named} {
		require.True(t, got.Has(at))
	}
	require.False(t, got.Has(lost))
	require.False(t, got.Has(lineage.SpanRef{Run: first.Run, Seq: first.Seq + 1}))
	require.False(t, got.Has(lineage.SpanRef{Run: first.Run}))
	require.EqualValues(t, 4, got.Spans())
	require.EqualValues(t, 3, reach(elsewhere).Spans())

	record, err := write.Of(store).Engine().Thread(bg, thread.ID())
	require.NoError(t, err)
	record.Keeps = true
	_, err = write.Of(store).Engine().Apply(bg, &structure.Commit{Records: []structure.Record{record}}, backend.Options{})
	require.NoError(t, err)
	got = reach(thread)
	require.True(t, got.Has(lost))
	require.EqualValues(t, 6, got.Spans())
	var seen backend.Reach = map[structure.RunID]*backend.Extent{}
	for _, e := range got.Extents() {
		if !e.Run.Parent.IsZero() {
			require.True(t, seen.Has(e.Run.Parent), "what a run follows comes before it")
		}
		seen[e.Run.ID] = &e
	}
	require.Equal(t, got, seen)
}
