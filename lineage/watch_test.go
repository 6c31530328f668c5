package lineage_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func head(t testing.TB, s *lineage.Store) uint64 {
	t.Helper()
	at, err := s.View().Head(bg)
	require.NoError(t, err)
	return at.Number
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
	back(t, main, 1)
	_, err := thread.SetCheckpoint(bg, "c", lineage.CheckpointOptions{})
	require.NoError(t, err)
	require.NoError(t, thread.DeleteCheckpoint(bg, "c"))
	require.NoError(t, f.Delete(bg))
	summary := summarize(t, main, lineage.SummarizeOptions{})
	require.NoError(t, main.DeleteSummary(bg, summary.ID))
	require.NoError(t, s.Erase(bg, content.Sum([]byte("two"))))
	_, err = main.Alternatives(bg, lineage.Overrides{})
	require.NoError(t, err)
	b, err := aside(thread)
	require.NoError(t, err)
	require.NoError(t, thread.DeleteBranch(bg, b.Name))
	require.NoError(t, thread.Delete(bg))

	changes := gathered(t, s.Changes(bg, lineage.Cursor{Number: from - 1}))
	require.Equal(t, [][]lineage.EventKind{
		{lineage.ContentStored, lineage.ContextExtended},
		{lineage.ContextCreated},
		{lineage.ContextMoved},
		{lineage.CheckpointSet, lineage.ThreadUpdated},
		{lineage.CheckpointDeleted, lineage.ThreadUpdated},
		{lineage.ContextDeleted, lineage.ThreadUpdated},
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
		for change, err := range s.Watch(bg, lineage.Cursor{Number: 1}) {
			if err != nil {
				break
			}
			if seen = append(seen, change.Commit.Number); change.Commit.Number == last {
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
	for after := (lineage.Cursor{}); after.Number < head(t, s); {
		taken := 0
		for change, err := range s.Watch(bg, after) {
			require.NoError(t, err)
			seen = append(seen, change.Commit.Number)
			after = change.Commit
			if taken++; taken == 4 || after.Number == head(t, s) {
				break
			}
		}
	}
	require.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, seen)
}

// A watcher whose commits were lost does not get others with the same numbers.
func TestWatchOfAnotherHistory(t *testing.T) {
	dir := t.TempDir()
	open := func(dir string) *lineage.Store {
		s, err := lineage.Open(bg, dir, lineage.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open(dir)
	c := newContext(t, s, "one", "two")
	backup := filepath.Join(t.TempDir(), "backup")
	_, err := s.Backup(bg, backup, lineage.BackupOptions{})
	require.NoError(t, err)
	say(t, c, "three", "four")
	var seen lineage.Cursor
	for change, err := range s.Changes(bg, lineage.Cursor{}) {
		require.NoError(t, err)
		seen = change.Commit
	}
	lost := filepath.Join(t.TempDir(), "lost") // its last two commits
	_, err = lineage.Restore(bg, backup, lost, lineage.RestoreOptions{})
	require.NoError(t, err)
	s = open(lost)
	for range 3 {
		for _, watch := range []func(context.Context, lineage.Cursor) iter.Seq2[lineage.Change, error]{s.Watch, s.Changes} {
			changes, err := gather(watch(bg, seen))
			require.ErrorIs(t, err, lineage.ErrDiverged)
			require.Empty(t, changes)
			var diverged *backend.DivergedError
			require.ErrorAs(t, err, &diverged)
			require.Equal(t, lineage.Cursor{Number: seen.Number - 2, ID: seen.ID}, diverged.Common)
			_, err = gather(s.Changes(bg, diverged.Common))
			require.NoError(t, err)
		}
		newContext(t, s, "another")
	}
}

// TestStalledWatcher writes while a watcher is paused in the middle of a commit: if writers waited
// for it, the test would never end.
func TestStalledWatcher(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one")
	stalled := 0
	for _, err := range s.Watch(bg, lineage.Cursor{}) {
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

// watchEnds are the ways to end watching.
var watchEnds = map[string]struct {
	end  func(*lineage.Store, context.CancelFunc)
	want error
}{
	"on cancellation": {func(_ *lineage.Store, cancel context.CancelFunc) { cancel() }, context.Canceled},
	"on close":        {func(s *lineage.Store, _ context.CancelFunc) { _ = s.Close() }, lineage.ErrClosed},
}

func TestWatchEnds(t *testing.T) {
	requireEnds(t, nil, func(ctx context.Context, s *lineage.Store, _ *lineage.Context) iter.Seq2[lineage.Change, error] {
		return s.Watch(ctx, lineage.Cursor{})
	})
}

func TestWatchContextEnds(t *testing.T) {
	requireEnds(t, []string{"one"}, func(ctx context.Context, _ *lineage.Store, c *lineage.Context) iter.Seq2[*lineage.Entry, error] {
		return c.Watch(ctx, lineage.SpanRef{})
	})
}

// requireEnds watches a context, receives one value, and ends watching in every way.
func requireEnds[T any](t *testing.T, messages []string, watch func(context.Context, *lineage.Store, *lineage.Context) iter.Seq2[T, error]) {
	for name, test := range watchEnds {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			c := newContext(t, s, messages...)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			started, ended := make(chan struct{}), make(chan error)
			go func() {
				var last error
				for _, err := range watch(ctx, s, c) {
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

// extensions returns the ContextExtended events from a commit on.
func extensions(t *testing.T, s *lineage.Store, from uint64) (found []lineage.Event) {
	t.Helper()
	for change, err := range s.Changes(bg, lineage.Cursor{Number: from - 1}) {
		require.NoError(t, err)
		for _, e := range change.Events {
			if e.Kind == lineage.ContextExtended {
				found = append(found, e)
			}
		}
	}
	return found
}

// The spans between From and Span are those that the commit added.
func TestExtendedFrom(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	from := head(t, s) + 1
	extended := func(c *lineage.Context, from, to lineage.SpanRef) lineage.Event {
		return lineage.Event{Kind: lineage.ContextExtended, Context: c.ID(), From: from, Span: to}
	}
	three, err := c.Extend(bg, lineage.User("one"), lineage.User("two"), lineage.User("three"))
	require.NoError(t, err)
	want := []lineage.Event{extended(c, lineage.SpanRef{}, three[2])}
	more, err := c.Extend(bg, lineage.User("four"), lineage.User("five"))
	require.NoError(t, err)
	want = append(want, extended(c, three[2], more[1]))

	// A fork begins a run at a span that another context has continued.
	f, err := c.Fork(bg, lineage.ForkOptions{At: three[0]})
	require.NoError(t, err)
	forked, err := f.Extend(bg, lineage.User("2"), lineage.User("3"))
	require.NoError(t, err)
	want = append(want, extended(f, three[0], forked[1]))

	here, there, err := addAndSend(s, c, f, lineage.User("said"), lineage.User("heard"))
	require.NoError(t, err)
	want = append(want, extended(c, more[1], here), extended(f, forked[1], there))

	edited, err := c.Edit(bg, three[1], lineage.User("TWO"), lineage.EditOptions{Replay: func(*lineage.Entry) bool { return true }})
	require.NoError(t, err)
	want = append(want, extended(edited, three[0], tip(t, edited)))

	// Choosing adds nothing: the spans exist already.
	offered, err := c.Alternatives(bg, lineage.Overrides{})
	require.NoError(t, err)
	spoken := say(t, offered[0], "an answer")
	require.NoError(t, c.Choose(bg, offered[0]))
	want = append(want, extended(offered[0], here, spoken), extended(c, spoken, spoken))
	require.Equal(t, want, extensions(t, s, from))
}

// Runs of earlier commits are looked up.
func TestExtendedFromARunOfAnotherCommit(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one")
	first := tip(t, c)
	block := structure.NewBlock("text/plain", content.BlockOrigin{}, write.Of(s).Now(), []byte("two"))
	ref := lineage.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 1}
	for _, records := range [][]structure.Record{
		{&structure.Run{ID: ref.Run, Parent: first}},
		{block, &structure.Span{Ref: ref, Usages: []structure.Usage{{Kind: lineage.Message, Role: "user", Content: block.ID, CreatedAt: write.Of(s).Now()}}}, &structure.Tip{Context: c.ID(), Span: ref}},
	} {
		_, err := write.Of(s).Engine().Apply(bg, &structure.Commit{Records: records}, backend.Options{})
		require.NoError(t, err)
	}
	found := extensions(t, s, head(t, s))
	require.Len(t, found, 1)
	require.Equal(t, first, found[0].From)
}

// watching watches a context in the background. next returns the next text, or the final error.
func watching(t *testing.T, c *lineage.Context, after lineage.SpanRef) (next func() (string, error)) {
	t.Helper()
	type told struct {
		text string
		err  error
	}
	ctx, cancel := context.WithCancel(bg)
	tells, done := make(chan told), make(chan struct{})
	go func() {
		defer close(done)
		defer close(tells)
		for e, err := range c.Watch(ctx, after) {
			of := told{err: err}
			if err == nil {
				of.text = e.Excerpt()
			}
			select {
			case tells <- of:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return func() (string, error) {
		of := <-tells
		return of.text, of.err
	}
}

func requireNext(t *testing.T, next func() (string, error), want ...string) {
	t.Helper()
	for _, text := range want {
		got, err := next()
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
}

func TestWatchContext(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one", "two")
	after := tip(t, c)
	say(t, c, "three") // after the history was read, before it is watched
	next := watching(t, c, after)
	requireNext(t, next, "three")
	newContext(t, s, "elsewhere")
	_, err := c.Extend(bg, lineage.User("four"), lineage.User("five"))
	require.NoError(t, err)
	requireNext(t, next, "four", "five")
	_, err = c.Extend(bg, lineage.Together(lineage.User("six"), lineage.User("seven")))
	require.NoError(t, err)
	requireNext(t, next, "six", "seven")
	offered, err := c.Alternatives(bg, lineage.Overrides{})
	require.NoError(t, err)
	say(t, offered[0], "an", "answer")
	require.NoError(t, c.Choose(bg, offered[0]))
	requireNext(t, next, "an", "answer")

	requireNext(t, watching(t, c, lineage.SpanRef{}), "one", "two", "three")
	empty := newContext(t, s)
	next = watching(t, empty, lineage.SpanRef{})
	say(t, empty, "the first")
	requireNext(t, next, "the first")
}

func TestWatchContextThatIsMoved(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one", "two")
	at := tip(t, c)
	next := watching(t, c, lineage.SpanRef{})
	requireNext(t, next, "one", "two")
	back(t, c, 1)
	_, err := next()
	require.ErrorIs(t, err, lineage.ErrTipMoved)
	var moved *lineage.TipError
	require.ErrorAs(t, err, &moved)
	require.Equal(t, at, moved.Expected)
	require.Equal(t, tip(t, c), moved.Actual)
	require.Equal(t, c.ID(), moved.Context)

	// Watching continues from the current tip.
	next = watching(t, c, moved.Actual)
	say(t, c, "another")
	requireNext(t, next, "another")
	require.NoError(t, c.MoveTo(bg, tip(t, newContext(t, s, "elsewhere")), "test"))
	_, err = next()
	require.ErrorIs(t, err, lineage.ErrTipMoved)

	for _, after := range []lineage.SpanRef{at, {Run: structure.NewID[structure.RunID](), Seq: 1}} {
		_, err = gather(c.Watch(bg, after))
		require.ErrorIs(t, err, lineage.ErrTipMoved, "it does not have the span")
	}
}

// A context that was moved back and extended to the same length does not yield the new entries as a
// continuation.
func TestWatchDivergedContext(t *testing.T) {
	c := newContext(t, newStore(t), "one", "two")
	var seen []string
	var last error
	for e, err := range c.Watch(bg, lineage.SpanRef{}) {
		if last = err; err != nil {
			break
		}
		if seen = append(seen, e.Excerpt()); e.Excerpt() == "two" {
			back(t, c, 1)
			say(t, c, "another", "and more")
		}
	}
	require.Equal(t, []string{"one", "two"}, seen)
	require.ErrorIs(t, last, lineage.ErrTipMoved)
}

func TestWatchContextMovedThereAndBack(t *testing.T) {
	c := newContext(t, newStore(t), "one", "two")
	for e, err := range c.Watch(bg, lineage.SpanRef{}) {
		require.NoError(t, err)
		if e.Excerpt() == "two" {
			back(t, c, 1)
			require.NoError(t, c.Undo(bg))
			say(t, c, "three")
		}
		if e.Excerpt() == "three" {
			break
		}
	}
}

func TestWatchContextThatIsDeleted(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	say(t, main, "one")
	for name, remove := range map[string]func(*lineage.Context) error{
		"the context": func(c *lineage.Context) error { return c.Delete(bg) },
		"its thread":  func(*lineage.Context) error { return thread.Delete(bg) },
	} {
		t.Run(name, func(t *testing.T) {
			c := fork(t, main)
			next := watching(t, c, lineage.SpanRef{})
			requireNext(t, next, "one")
			require.NoError(t, remove(c))
			_, err := next()
			require.ErrorIs(t, err, lineage.ErrNotFound)
			require.NotErrorIs(t, err, lineage.ErrTipMoved)
			thread, main = newThread(t, s)
			say(t, main, "one")
		})
	}
}

// TestWatchContextLeftEarly would hang in Close, or fail in TestMain, if an abandoned watcher left
// something after.
func TestWatchContextLeftEarly(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, numbered("message", 10)...)
	for e, err := range c.Watch(bg, lineage.SpanRef{}) {
		require.NoError(t, err)
		if e.Excerpt() == "message 3" {
			break
		}
	}
	require.NoError(t, s.Close())
}

// Watchers that start during concurrent writes read the final history.
func TestWatchContextWhileManyWrite(t *testing.T) {
	const writers, each = 4, 25
	s := newStore(t)
	c := newContext(t, s, "first")
	var writing, watching sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for i := range each {
				_, err := c.Extend(bg, lineage.User(fmt.Sprint(w, ".", i)), lineage.Assistant(fmt.Sprint(w, ".", i, " answered")))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	watched := make([][]string, 3)
	for k := range watched {
		writing.Add(1) // what is last comes after each has begun
		watching.Go(func() {
			before, err := c.All(bg)
			writing.Done()
			if err != nil {
				t.Error(err)
				return
			}
			seen := textsOf(before)
			for e, err := range c.Watch(bg, before[len(before)-1].Span) {
				if err != nil {
					t.Error(err)
					break
				}
				if seen = append(seen, e.Excerpt()); e.Excerpt() == "last" {
					break
				}
			}
			watched[k] = seen
		})
	}
	writing.Wait()
	say(t, c, "last")
	watching.Wait()
	want := texts(t, c)
	require.Len(t, want, 2+2*writers*each)
	for _, seen := range watched {
		require.Equal(t, want, seen)
	}
}

// A transaction that moves and extends a context has both events.
func TestEventsOfMoveAndExtension(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s, "one", "two", "three")
	was, from := tip(t, c), head(t, s)
	first, err := s.At(bg, was, 1)
	require.NoError(t, err)
	second, err := s.At(bg, was, 2)
	require.NoError(t, err)
	require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		c, err := tx.Context(bg, c.ID())
		require.NoError(t, err)
		require.NoError(t, c.MoveTo(bg, second, "a"))
		require.NoError(t, c.MoveTo(bg, first, "b"))
		_, err = c.Extend(bg, lineage.User("again"))
		return err
	}))
	var events []lineage.Event
	for change, err := range s.Changes(bg, lineage.Cursor{Number: from}) {
		require.NoError(t, err)
		for _, e := range change.Events {
			if e.Context == c.ID() {
				events = append(events, e)
			}
		}
	}
	require.Equal(t, []lineage.Event{
		{Kind: lineage.ContextMoved, Context: c.ID(), Span: second, From: was, Name: "a"},
		{Kind: lineage.ContextMoved, Context: c.ID(), Span: first, From: second, Name: "b"},
		{Kind: lineage.ContextExtended, Context: c.ID(), Span: tip(t, c), From: first},
	}, events)
}
