package lineage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

func head(t testing.TB, s *lineage.Store) uint64 {
	t.Helper()
	n, err := s.Engine().Head(bg)
	require.NoError(t, err)
	return n
}

func kindsOf(changes []lineage.Change) [][]lineage.EventKind {
	var kinds [][]lineage.EventKind
	for _, c := range changes {
		var of []lineage.EventKind
		for _, e := range c.Events {
			of = append(of, e.Kind)
		}
		kinds = append(kinds, of)
	}
	return kinds
}

func TestEvents(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	at := say(t, main, "one")
	from := head(t, s) + 1
	say(t, main, "two")
	f := fork(t, main)
	require.NoError(t, main.Back(bg, 1))
	_, err := thread.Checkpoint(bg, "c")
	require.NoError(t, err)
	require.NoError(t, thread.DeleteCheckpoint(bg, "c"))
	require.NoError(t, f.Delete(bg))
	summary := summarize(t, main, lineage.SummarizeOptions{})
	require.NoError(t, main.DeleteSummary(bg, summary.ID))
	require.NoError(t, s.Erase(bg, content.Sum([]byte("two"))))
	_, err = main.Alternatives(bg, lineage.Overrides{})
	require.NoError(t, err)
	b, err := thread.Aside(bg)
	require.NoError(t, err)
	require.NoError(t, thread.DeleteBranch(bg, b.Name))
	require.NoError(t, thread.Delete(bg))

	changes := gathered(t, s.Changes(bg, from))
	require.Equal(t, [][]lineage.EventKind{
		{lineage.ContentStored, lineage.ContextExtended},
		{lineage.ContextCreated},
		{lineage.ContextMoved},
		{lineage.CheckpointSet, lineage.ThreadUpdated},
		{lineage.CheckpointDeleted},
		{lineage.ContextDeleted},
		{lineage.ContentStored, lineage.Summarized},
		{lineage.SummaryDeleted},
		{lineage.ContentErased},
		{lineage.SpanSetOffered, lineage.ContextCreated},
		{lineage.ContextCreated, lineage.BranchSet, lineage.ThreadUpdated},
		{lineage.BranchDeleted, lineage.ContextDeleted, lineage.ThreadUpdated},
		{lineage.ThreadDeleted},
	}, kindsOf(changes))
	moved := changes[2].Events[0]
	require.Equal(t, lineage.Event{Kind: lineage.ContextMoved, Context: main.ID(), Span: at, From: changes[0].Events[1].Span, Name: "rewind"}, moved)
}

func TestWatchYieldsEachCommitOnce(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one", "two")
	done := make(chan []uint64)
	const last = 40
	go func() {
		var seen []uint64
		for change, err := range s.Watch(bg, 2) {
			if err != nil {
				break
			}
			if seen = append(seen, change.Commit); change.Commit == last {
				break
			}
		}
		done <- seen
	}()
	for head(t, s) < last {
		say(t, c, "more")
	}
	seen := <-done
	require.Len(t, seen, last-1)
	for i, n := range seen {
		require.Equal(t, uint64(i+2), n)
	}
}

func TestWatchResumes(t *testing.T) {
	s := newStore(t)
	newContext(t, s, numbered("message", 10)...)
	var seen []uint64
	for next := uint64(0); next <= head(t, s); {
		taken := 0
		for change, err := range s.Watch(bg, next) {
			require.NoError(t, err)
			seen = append(seen, change.Commit)
			next = change.Commit + 1
			if taken++; taken == 4 || next > head(t, s) {
				break
			}
		}
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, seen)
}

// TestStalledWatcher writes while a watcher holds still in the middle of a
// commit: were writers to wait for it, the test would never end.
func TestStalledWatcher(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one")
	stalled := 0
	for _, err := range s.Watch(bg, 1) {
		require.NoError(t, err)
		if stalled++; stalled == 1 {
			say(t, c, numbered("more", 200)...)
		}
		if stalled == 202 {
			break
		}
	}
	require.Equal(t, 202, stalled)
}

func TestWatchEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*lineage.Store, context.CancelFunc)
		want error
	}{
		"on cancellation": {func(_ *lineage.Store, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"on close":        {func(s *lineage.Store, _ context.CancelFunc) { _ = s.Close() }, lineage.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			newContext(t, s)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			started, ended := make(chan struct{}), make(chan error)
			go func() {
				var last error
				for _, err := range s.Watch(ctx, 1) {
					if last = err; err == nil {
						close(started)
					}
				}
				ended <- last
			}()
			<-started
			test.end(s, cancel)
			require.ErrorIs(t, <-ended, test.want)
		})
	}
}
