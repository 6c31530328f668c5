package backendtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// firstError reads a sequence up to its first error.
func firstError[T any](seq iter.Seq2[T, error]) error {
	for _, err := range seq {
		if err != nil {
			return err
		}
	}
	return nil
}

// reads calls every method of a reader on the records of talk and returns the
// errors by method.
func reads(ctx context.Context, r backend.Reader) map[string]error {
	thread, own, runID := id[structure.ThreadID]("t"), id[structure.ContextID]("c"), id[structure.RunID]("r")
	calls := sequences(ctx, r)
	call := func(name string, fn func() (any, error)) { _, calls[name] = fn() }
	call("Head", func() (any, error) { return r.Head(ctx) })
	call("Thread", func() (any, error) { return r.Thread(ctx, thread) })
	call("Context", func() (any, error) { return r.Context(ctx, own) })
	call("Branch", func() (any, error) { return r.Branch(ctx, thread, "main") })
	call("Checkpoint", func() (any, error) { return r.Checkpoint(ctx, thread, "p") })
	call("LastMessage", func() (any, error) { return r.LastMessage(ctx, structure.Home{Thread: thread}) })
	call("Run", func() (any, error) { return r.Run(ctx, runID) })
	call("Ancestry", func() (any, error) { return r.Ancestry(ctx, runID, 1) })
	call("Last", func() (any, error) { return r.Last(ctx, runID) })
	call("Digest", func() (any, error) { return r.Digest(ctx, at("r", 2)) })
	call("SpanSet", func() (any, error) { return r.SpanSet(ctx, id[structure.SpanSetID]("s")) })
	call("Has", func() (any, error) { return r.Has(ctx, []content.ID{content.Sum([]byte("one"))}) })
	call("Blocks", func() (any, error) { return r.Blocks(ctx, []content.ID{content.Sum([]byte("one"))}) })
	call("Chunks", func() (any, error) { return r.Chunks(ctx, []content.Key{content.KeyOf([]byte("piece"))}) })
	call("Stats", func() (any, error) { return r.Stats(ctx) })
	return calls
}

// sequences reads every sequence up to its first error. None of them is empty.
func sequences(ctx context.Context, r backend.Reader) map[string]error {
	thread, own := id[structure.ThreadID]("t"), id[structure.ContextID]("c")
	return map[string]error{
		"Threads":             firstError(r.Threads(ctx, structure.ThreadID{})),
		"ListThreads":         firstError(r.ListThreads(ctx, backend.ThreadQuery{})),
		"ListThreads by id":   firstError(r.ListThreads(ctx, backend.ThreadQuery{TitlePrefix: "t"})),
		"ThreadsEnding":       firstError(r.ThreadsEnding(ctx, idEnd(thread))),
		"Contexts":            firstError(r.Contexts(ctx, thread, structure.ContextID{})),
		"Contexts of all":     firstError(r.Contexts(ctx, structure.ThreadID{}, structure.ContextID{})),
		"Children":            firstError(r.Children(ctx, own, structure.ContextID{})),
		"Branches":            firstError(r.Branches(ctx, thread, "", "")),
		"Checkpoints":         firstError(r.Checkpoints(ctx, thread, "")),
		"BranchesBySource":    firstError(r.BranchesBySource(ctx, "source", thread)),
		"CheckpointsBySource": firstError(r.CheckpointsBySource(ctx, "source", thread)),
		"Find":                firstError(r.Find(ctx, "source", thread, backend.Found{})),
		"RunsOf":              firstError(r.RunsOf(ctx, thread, structure.RunID{})),
		"Forks":               firstError(r.Forks(ctx, id[structure.RunID]("r"))),
		"Path":                firstError(r.Path(ctx, at("r", 3), structure.Window{}, backend.PathOptions{Bodies: true})),
		"Alternatives":        firstError(r.Alternatives(ctx, id[structure.SpanSetID]("s"))),
		"Summaries":           firstError(r.Summaries(ctx, own)),
		"Reflog":              firstError(r.Reflog(ctx, own)),
		"Where":               firstError(r.Where(ctx, content.Sum([]byte("one")))),
	}
}

// rich fills a store so that no result of reads and sequences is empty.
func rich(s *store) {
	child := view("child", "t", at("r", 1))
	child.Parent = id[structure.ContextID]("c")
	span := sourcedSpan(at("q", 1), "one", "source")
	span.Set = id[structure.SpanSetID]("s")
	point := checkpoint("t", "p", at("r", 1))
	point.SourceID = "source"
	s.apply(talk()...)
	s.apply(
		child, set("s", at("r", 1)), runOf("t", "q", at("r", 1)), span, chunk("piece"), point, sourced(branch("t", "side", "c"), "source"),
		summary("s", "c", "one", at("r", 1)), reflog("c", at("r", 2), at("r", 1)),
	)
}

func testClose(t *testing.T, c Config) {
	s := newStore(t, c)
	rich(s)
	for name, err := range reads(background, s) {
		require.NoError(t, err, name)
	}
	require.NoError(t, s.Close())
	for name, err := range reads(background, s) {
		require.ErrorIs(t, err, backend.ErrClosed, name)
	}
	_, err := s.Apply(background, s.commit(thread("late")), backend.Options{})
	require.ErrorIs(t, err, backend.ErrClosed)
	_, err = s.Snapshot(background)
	require.ErrorIs(t, err, backend.ErrClosed)
	_, err = s.Wait(background, backend.Cursor{})
	require.ErrorIs(t, err, backend.ErrClosed)
	require.ErrorIs(t, firstError(s.Feed(background, from(1))), backend.ErrClosed)
	require.ErrorIs(t, firstError(s.Verify(background, backend.VerifyOptions{})), backend.ErrClosed)
	require.ErrorIs(t, s.Sync(background), backend.ErrClosed)
	require.NoError(t, s.Close(), "closing again is safe")
	s.start()
	s.check()
}

// testCloseExpires closes the engine while a snapshot and sequences are open. Close does
// not wait for them: they return errors from then on.
func testCloseExpires(t *testing.T, c Config) {
	s := newStore(t, c)
	rich(s)
	open, err := s.Snapshot(background)
	require.NoError(t, err)
	paused := map[string]*pausedPath{"of the engine": pausePath(t, s), "of a snapshot": pausePath(t, open)}
	next, stop := iter.Pull2(s.Feed(background, backend.Cursor{}))
	defer stop()
	_, err, ok := next()
	require.True(t, ok)
	require.NoError(t, err)
	left := pausePath(t, s)

	require.NoError(t, s.Close())
	for name, err := range reads(background, open) {
		require.ErrorIs(t, err, backend.ErrExpired, name)
	}
	for name, p := range paused {
		p.requireExpired(name)
	}
	_, err, ok = next()
	require.True(t, ok)
	require.ErrorIs(t, err, backend.ErrExpired)
	_, _, ok = next()
	require.False(t, ok)
	left.stop()
	require.NoError(t, open.Close())
	require.NoError(t, open.Close(), "closing again is safe")

	s.start()
	s.check()
	for name, err := range reads(background, open) {
		require.Error(t, err, name)
	}
}

// pausedPath is a path of which one step has been read.
type pausedPath struct {
	t     *testing.T
	first *backend.Step
	was   []byte
	next  func() (*backend.Step, error, bool)
	stop  func()
}

func pausePath(t *testing.T, r backend.Reader) *pausedPath {
	p := &pausedPath{t: t}
	p.next, p.stop = iter.Pull2(r.Path(background, at("r", 3), structure.Window{}, backend.PathOptions{Bodies: true}))
	var err error
	var ok bool
	p.first, err, ok = p.next()
	require.True(t, ok)
	require.NoError(t, err)
	p.was = bytes.Clone(p.first.Blocks[0].Body)
	return p
}

// requireExpired checks that the first step is unchanged and that an error follows it.
func (p *pausedPath) requireExpired(name string) {
	p.t.Helper()
	require.Equal(p.t, p.was, p.first.Blocks[0].Body, name)
	require.Equal(p.t, at("r", 1), p.first.Span.Ref, name)
	_, err, ok := p.next()
	require.True(p.t, ok, name)
	require.ErrorIs(p.t, err, backend.ErrExpired, name)
	_, _, ok = p.next()
	require.False(p.t, ok, name)
	p.stop()
}

// testCloseUnderReaders closes the engine while goroutines read snapshots and sequences:
// each sequence ends completely or with an error, and its values are right.
func testCloseUnderReaders(t *testing.T, c Config) {
	s := newStore(t, c)
	rich(s)
	for range 3 {
		var ended sync.WaitGroup
		var began sync.WaitGroup
		for range 4 {
			snapshot, err := s.Snapshot(background)
			require.NoError(t, err)
			for _, r := range []backend.Reader{snapshot, s.Engine} {
				began.Add(1)
				ended.Go(func() {
					err := readTalk(r)
					began.Done()
					for err == nil {
						err = readTalk(r)
					}
					if !errors.Is(err, backend.ErrExpired) && !errors.Is(err, backend.ErrClosed) {
						t.Error(err)
					}
				})
			}
		}
		began.Wait()
		require.NoError(t, s.Close())
		ended.Wait()
		s.start()
		s.check()
	}
}

// readTalk compares the history of talk with the expected one.
func readTalk(r backend.Reader) error {
	n := uint64(0)
	for step, err := range r.Path(background, at("r", 3), structure.Window{}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return err
		}
		if n++; step.Span.Ref != at("r", n) || content.Sum(step.Blocks[0].Body) != step.Span.Usages[0].Content {
			return fmt.Errorf("step %d is %v", n, step)
		}
	}
	if n != 3 {
		return fmt.Errorf("%d steps and no error", n)
	}
	return nil
}

// testCloseMeanwhile closes the engine while goroutines write and read: acknowledged
// commits survive, and all other calls return errors.
func testCloseMeanwhile(t *testing.T, c Config) {
	s := newStore(t, c)
	rich(s)
	for round := range 3 {
		engine := s.Engine
		var wg sync.WaitGroup
		var mu sync.Mutex
		acknowledged := map[uint64]string{}
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					name := fmt.Sprint("thread ", round, w, i)
					receipt, err := engine.Apply(background, &structure.Commit{Records: []structure.Record{thread(name)}}, backend.Options{Durability: backend.Normal})
					if errors.Is(err, backend.ErrClosed) {
						return
					}
					mu.Lock()
					acknowledged[receipt.Number] = name
					mu.Unlock()
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				for {
					for name, err := range reads(background, engine) {
						if errors.Is(err, backend.ErrClosed) || errors.Is(err, backend.ErrExpired) {
							return
						}
						if err != nil {
							t.Errorf("%s: %v", name, err)
							return
						}
					}
				}
			})
		}
		_, err := engine.Wait(background, backend.Cursor{Number: s.head() + 20})
		require.NoError(t, err)
		require.NoError(t, engine.Close())
		wg.Wait()
		s.start()
		head := s.head()
		for number, name := range acknowledged {
			require.LessOrEqual(t, number, head)
			_, err := s.Thread(background, id[structure.ThreadID](name))
			require.NoError(t, err, "commit %d", number)
		}
	}
}

func (s *store) head() uint64 {
	head, err := s.Head(background)
	require.NoError(s.t, err)
	return head.Number
}

// testCancel reads and writes with a canceled context.
func testCancel(t *testing.T, c Config) {
	s := newStore(t, c)
	rich(s)
	ctx, cancel := context.WithCancelCause(background)
	why := errors.New("enough")
	cancel(why)
	for name, err := range sequences(ctx, s) {
		require.ErrorIs(t, err, why, name)
	}
	require.ErrorIs(t, firstError(s.Feed(ctx, from(1))), why)
	require.ErrorIs(t, firstError(s.Verify(ctx, backend.VerifyOptions{Deep: true})), why)
	before := s.model.number
	_, err := s.Apply(ctx, s.commit(thread("late")), backend.Options{})
	require.ErrorIs(t, err, why)
	require.Equal(t, before, s.head())
	snapshot, err := s.Snapshot(background)
	require.NoError(t, err)
	for name, err := range sequences(ctx, snapshot) {
		require.ErrorIs(t, err, why, name)
	}
	require.NoError(t, snapshot.Close())

	// Cancel in the middle of a sequence.
	later, cancelLater := context.WithCancelCause(background)
	defer cancelLater(nil)
	seen := 0
	for _, err := range s.Path(later, at("r", 3), structure.Window{}, backend.PathOptions{}) {
		if seen++; seen > 1 {
			require.ErrorIs(t, err, why)
		}
		cancelLater(why)
	}
	require.Equal(t, 2, seen)
	s.check()
}

// testBreaks stops reading every sequence after its first element.
func testBreaks(t *testing.T, c Config) {
	s := newStore(t, c)
	rich(s)
	thread, own := id[structure.ThreadID]("t"), id[structure.ContextID]("c")
	for range s.Threads(background, structure.ThreadID{}) {
		for range s.Contexts(background, thread, structure.ContextID{}) {
			for range s.Children(background, own, structure.ContextID{}) {
				for range s.Branches(background, thread, "", "") {
					for range s.Forks(background, structure.RunID{}) {
						for range s.Path(background, at("r", 3), structure.Window{}, backend.PathOptions{}) {
							for range s.Where(background, content.Sum([]byte("one"))) {
								for range s.Feed(background, from(1)) {
									break
								}
								break
							}
							break
						}
						break
					}
					break
				}
				break
			}
			break
		}
		break
	}
	again := s.Threads(background, structure.ThreadID{})
	require.Len(t, list(t, again), 1)
	require.Len(t, list(t, again), 1, "a sequence can be read again")
	s.check()
	s.restart()
	s.check()
}
