package follow

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// fullDisk is an engine that takes no commits while full is set.
type fullDisk struct {
	backend.Engine
	full   *atomic.Bool
	failed *atomic.Int64
}

func (e fullDisk) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.full.Load() {
		e.failed.Add(1)
		return backend.Receipt{}, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return e.Engine.Apply(ctx, c, o)
}

// Two followers wait while the disk is full. Each says so once, and goes on when there is space; with Once it is an error.
func TestFullDisk(t *testing.T) {
	h := newHome(t)
	engine := fullDisk{write.Of(memory(t)).Engine(), new(atomic.Bool), new(atomic.Int64)}
	store := lineage.New(engine)
	first, firstName := session(1)
	path := filepath.Join(h.project(), firstName)
	h.write(t, path, line(first, "a", "", "user", "one"))
	runs := []*following{start(t, store, h.options()), start(t, store, h.options())}
	engine.full.Store(true)
	h.append(t, path, line(first, "b", "a", "user", "two"))
	for _, f := range runs {
		f.await(t, func(e Event) bool { return e.Kind == StoreFailed && errors.Is(e.Err, syscall.ENOSPC) })
	}
	second, secondName := session(2)
	h.write(t, filepath.Join(h.project(), secondName), line(second, "a", "", "user", "three")+"{broken\n")
	o := h.options()
	o.Once = true
	require.ErrorIs(t, Run(t.Context(), store, o), syscall.ENOSPC)
	failed := engine.failed.Load()
	require.Eventually(t, func() bool { return engine.failed.Load() > failed }, hangs, time.Millisecond) // a later attempt
	engine.full.Store(false)
	for _, f := range runs {
		f.await(t, func(e Event) bool { return e.Kind == StoreWorks })
		f.await(t, func(e Event) bool { return e.Kind == Waiting })
		require.Len(t, of(f.all, StoreFailed), 1)
		require.Len(t, of(f.all, Found), 1, "the folder was found before")
		require.Empty(t, of(f.all, Failed), "the files are not the reason")
	}
	require.Equal(t, []string{"one", "two"}, texts(t, store, first))
	require.Equal(t, []string{"three"}, texts(t, store, second))
	h.append(t, path, line(first, "c", "b", "user", "four"))
	h.caughtUp(t, runs...)
	require.Equal(t, []string{"one", "two", "four"}, texts(t, store, first))
	for _, f := range runs {
		f.stop(t)
		require.Len(t, of(f.all, StoreFailed), 1)
	}
}

// The disk is full as soon as the messages are stored, before the lines: that is not a problem of the file.
func TestDiskIsFullForLines(t *testing.T) {
	h := newHome(t)
	engine := fullDisk{write.Of(memory(t)).Engine(), new(atomic.Bool), new(atomic.Int64)}
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	fills := fillsDisk{engine}
	o := h.options()
	o.Once = true
	o.Events = func(e Event) { require.NotEqual(t, Failed, e.Kind) }
	require.ErrorIs(t, Run(t.Context(), lineage.New(fills), o), syscall.ENOSPC)
	engine.full.Store(false)
	store := lineage.New(engine)
	once(t, store, h.options())
	require.Equal(t, []string{"one"}, texts(t, store, id))
	_, err := FindSource(t.Context(), store, o.Machine.ID, filepath.Join(h.project(), name))
	require.NoError(t, err)
}

// The disk was full when the messages were stored, and has room directly after that: that is not a problem of the file either.
func TestDiskWasFull(t *testing.T) {
	h := newHome(t)
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	store := lineage.New(wasFull{write.Of(memory(t)).Engine(), new(atomic.Bool)})
	o := h.options()
	o.Once = true
	o.Events = func(e Event) { require.NotEqual(t, Failed, e.Kind) }
	require.ErrorIs(t, Run(t.Context(), store, o), syscall.ENOSPC)
	once(t, store, h.options())
	require.Equal(t, []string{"one"}, texts(t, store, id))
}

// wasFull is a disk that is full at the first commit with a thread.
type wasFull struct {
	backend.Engine
	had *atomic.Bool
}

func (e wasFull) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if slices.ContainsFunc(c.Records, func(r structure.Record) bool { return r.Kind() == structure.KindThread }) && !e.had.Swap(true) {
		return backend.Receipt{}, syscall.ENOSPC
	}
	return e.Engine.Apply(ctx, c, o)
}

// fillsDisk is a disk that is full after the first commit with a thread.
type fillsDisk struct{ fullDisk }

func (e fillsDisk) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	r, err := e.fullDisk.Apply(ctx, c, o)
	if slices.ContainsFunc(c.Records, func(r structure.Record) bool { return r.Kind() == structure.KindThread }) {
		e.full.Store(true)
	}
	return r, err
}

// refusingEngine is an engine that refuses the commits of one session.
type refusingEngine struct {
	backend.Engine
	err     error
	refuses func(c *structure.Commit) bool
}

func (e refusingEngine) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if e.refuses(c) {
		return backend.Receipt{}, e.err
	}
	return e.Engine.Apply(ctx, c, o)
}

// A session that the store refuses is set aside with its error, whatever that is: the store takes the other sessions.
func TestRefusedSessionIsSetAside(t *testing.T) {
	h := newHome(t)
	bad, badName := session(1)
	badPath := filepath.Join(h.project(), badName)
	h.write(t, badPath, line(bad, "a", "", "user", "one"))
	good, goodName := session(2)
	h.write(t, filepath.Join(h.project(), goodName), line(good, "a", "", "user", "two"))
	ofThread := func(c *structure.Commit) bool {
		return slices.ContainsFunc(c.Records, func(r structure.Record) bool {
			thread, ok := r.(*structure.Thread)
			return ok && thread.SourceID == bad
		})
	}
	ofLines := func(c *structure.Commit) bool {
		return slices.ContainsFunc(c.Records, func(r structure.Record) bool {
			source, ok := r.(*structure.Context)
			return ok && source.ID == lineage.SourceBranch(sourceID(h.options().Machine.ID, badPath))
		})
	}
	for _, err := range []error{structure.ErrIncomplete, structure.ErrBrokenAncestry, structure.ErrOutOfRange, lineage.ErrCorrupt, lineage.ErrTooLarge, errors.New("a new error")} {
		for _, refuses := range []func(*structure.Commit) bool{ofThread, ofLines} {
			store := lineage.New(refusingEngine{write.Of(memory(t)).Engine(), err, refuses})
			for range 2 {
				for _, e := range once(t, store, h.options()) {
					require.False(t, e.Kind == StoreFailed || e.Kind == Failed && e.Path != badPath, e)
				}
				require.Equal(t, []string{"two"}, texts(t, store, good))
				all, listErr := List(t.Context(), store, h.options())
				require.NoError(t, listErr)
				require.Len(t, all[0].Problems, 1)
				require.Equal(t, badPath, all[0].Problems[0].Path)
				require.Contains(t, all[0].Problems[0].Error, err.Error())
			}
			runs, clock := []*following(nil), newClock()
			for range 2 {
				o := h.options()
				o.Clock = clock
				runs = append(runs, start(t, store, o))
			}
			clock.advance(saveAfter)
			clock.advance(retryFirst)
			h.caughtUp(t, runs...)
			for _, f := range runs {
				f.stop(t)
				require.Empty(t, of(f.all, StoreFailed))
			}
		}
	}
}

// A store that stays read-only ends the run.
func TestReadOnlyStoreEndsTheRun(t *testing.T) {
	h, dir := newHome(t), t.TempDir()
	made, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	require.NoError(t, made.Close())
	store, err := lineage.Open(t.Context(), dir, lineage.Options{ReadOnly: true})
	require.NoError(t, err)
	defer store.Close()
	id, name := session(1)
	h.write(t, filepath.Join(h.project(), name), line(id, "a", "", "user", "one"))
	require.ErrorIs(t, Run(t.Context(), store, h.options()), lineage.ErrReadOnly)
}
