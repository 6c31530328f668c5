package importer

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// editor changes the contexts of threads at random.
type editor struct {
	*rapid.T
	ctx      context.Context
	store    *lineage.Store
	contexts []*lineage.Context
}

func (e *editor) pick() *lineage.Context {
	return rapid.SampledFrom(e.contexts).Draw(e.T, "context")
}

func (e *editor) thread() *lineage.Thread {
	t, err := e.store.OpenThread(e.ctx, lineage.ThreadOptions{SourceID: rapid.SampledFrom([]string{"s", "t"}).Draw(e.T, "thread")})
	require.NoError(e, err)
	if active, err := t.Active(e.ctx); err == nil {
		e.contexts = append(e.contexts, active)
	}
	return t
}

func (e *editor) metadata() []byte {
	return []byte(rapid.SampledFrom([]string{"", `{}`, `{"aside":"agent x"}`, `{"aside":"importing"}`, `{"aside":`}).Draw(e.T, "metadata"))
}

// edit makes a change. Some are refused.
func (e *editor) edit() error {
	t, name := e.thread(), rapid.SampledFrom([]string{"main", "a", "b", ""}).Draw(e.T, "name")
	if len(e.contexts) == 0 {
		return nil
	}
	c := e.pick()
	switch rapid.IntRange(0, 9).Draw(e.T, "change") {
	case 0:
		created, err := t.CreateBranch(e.ctx, name, lineage.BranchOptions{From: c, Metadata: e.metadata()})
		if err == nil {
			e.contexts = append(e.contexts, created)
		}
		return err
	case 1:
		created, err := c.Fork(e.ctx, lineage.ForkOptions{Thread: t.ID(), Metadata: e.metadata(), Empty: rapid.Bool().Draw(e.T, "empty")})
		if err == nil {
			e.contexts = append(e.contexts, created)
		}
		return err
	case 2:
		tip, err := e.pick().Tip(e.ctx)
		if err != nil {
			return err
		}
		return c.MoveTo(e.ctx, tip, "a test")
	case 3:
		return c.Undo(e.ctx)
	case 4:
		return c.Delete(e.ctx)
	case 5:
		return t.DeleteBranch(e.ctx, name)
	case 6:
		return t.NameBranch(e.ctx, name, c)
	case 7:
		return c.Update(e.ctx, func(info *lineage.ContextInfo) error {
			info.Metadata = e.metadata()
			return nil
		})
	case 8:
		if rapid.IntRange(0, 3).Draw(e.T, "delete") == 0 {
			return t.Delete(e.ctx)
		}
		_, err := e.store.Collect(e.ctx, lineage.CollectOptions{})
		return err
	default:
		_, err := c.Extend(e.ctx, lineage.User(fmt.Sprint(len(e.contexts))))
		return err
	}
}

// An outline that follows the feed equals one that is read.
func TestOutlinesAreUpToDate(t *testing.T) {
	ctx := context.Background()
	kept, followed := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
		require.NoError(rt, err)
		defer store.Close()
		engine := write.Of(store).Engine()
		e := &editor{T: rt, ctx: ctx, store: store}
		outlines := KeepAll()
		for range rapid.IntRange(1, 60).Draw(rt, "changes") {
			if err := e.edit(); err != nil {
				rt.Logf("refused: %v", err)
			}
			if rapid.IntRange(0, 2).Draw(rt, "more changes first") == 0 {
				continue
			}
			state, err := engine.Snapshot(ctx)
			require.NoError(rt, err)
			for thread, err := range state.Threads(ctx, structure.ThreadID{}) {
				require.NoError(rt, err)
				was := outlines.all[thread.ID]
				got, err := outlines.get(ctx, engine, state, thread.Home(), true)
				require.NoError(rt, err)
				if got == was {
					followed++
				}
				kept++
				want, err := outlineOf(ctx, state, thread.Home())
				require.NoError(rt, err)
				want.used = got.used
				require.Equal(rt, want, got)
			}
			size := 0
			for _, o := range outlines.all {
				size += o.size()
			}
			require.Equal(rt, size, outlines.size)
			require.NoError(rt, state.Close())
		}
	})
	require.Greater(t, followed, kept/4, "most were read again")
}

// A context that was deleted and created again between two reads, in another thread or without its name, is read again.
func TestOutlinesOfContextsCreatedAgain(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer store.Close()
	w, outlines := write.Of(store), KeepAll()
	requireRead := func(thread *lineage.Thread) {
		t.Helper()
		state, err := w.Engine().Snapshot(ctx)
		require.NoError(t, err)
		defer state.Close()
		found, err := state.Thread(ctx, thread.ID())
		require.NoError(t, err)
		got, err := outlines.get(ctx, w.Engine(), state, found.Home(), true)
		require.NoError(t, err)
		want, err := outlineOf(ctx, state, found.Home())
		require.NoError(t, err)
		want.used = got.used
		require.True(t, reflect.DeepEqual(want, got))
	}
	again := func(id lineage.ContextID, thread *lineage.Thread) {
		b := w.Batch()
		b.NewContext(write.Context{ID: id, Thread: thread.ID()})
		_, err := w.Commit(ctx, b)
		require.NoError(t, err)
	}
	one, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "one"})
	require.NoError(t, err)
	two, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "two"})
	require.NoError(t, err)
	for _, thread := range []*lineage.Thread{one, two} {
		c, err := one.CreateBranch(ctx, "b", lineage.BranchOptions{})
		require.NoError(t, err)
		requireRead(one)
		requireRead(two)
		require.NoError(t, one.DeleteBranch(ctx, "b"))
		again(c.ID(), thread)
		_, err = one.CreateBranch(ctx, "b", lineage.BranchOptions{})
		require.NoError(t, err)
		requireRead(one)
		requireRead(two)
		require.NoError(t, one.DeleteBranch(ctx, "b"))
	}
}

// Outlines stay within their limit, and those that nobody uses are dropped.
func TestOutlinesAreBounded(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer store.Close()
	outlines, engine := KeepAll(), write.Of(store).Engine()
	of := func(thread *lineage.Thread) *outline {
		state, err := engine.Snapshot(ctx)
		require.NoError(t, err)
		defer state.Close()
		found, err := state.Thread(ctx, thread.ID())
		require.NoError(t, err)
		o, err := outlines.get(ctx, engine, state, found.Home(), true)
		require.NoError(t, err)
		return o
	}
	var threads []*lineage.Thread
	for k := range 3 {
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: fmt.Sprint(k)})
		require.NoError(t, err)
		threads = append(threads, thread)
	}
	first := of(threads[0])
	require.Same(t, first, of(threads[0]))
	of(threads[1])
	for k := range maxUnused + 1 {
		_, err := threads[2].CreateBranch(ctx, fmt.Sprint(k), lineage.BranchOptions{Empty: true})
		require.NoError(t, err)
		require.Same(t, first, of(threads[0]))
	}
	require.Len(t, outlines.all, 1)
	large := of(threads[2])
	require.Len(t, outlines.all, 2)
	of(threads[0])
	outlines.most = large.size()
	of(threads[1])
	require.Len(t, outlines.all, 2)
	require.NotContains(t, outlines.all, threads[2].ID())

	// A state before that of the outlines, as after a failover, is read.
	before := of(threads[0])
	outlines.at.Number += 10
	require.NotSame(t, before, of(threads[0]))
	// So is the state after a commit that the store does not have.
	outlines.at = backend.Cursor{Number: outlines.at.Number - 1, ID: 1}
	before = outlines.all[threads[0].ID()]
	require.NotSame(t, before, of(threads[0]))

	// Outlines that changes of the store make too large are dropped.
	outlines.most = outlines.size
	_, err = threads[0].CreateBranch(ctx, "more", lineage.BranchOptions{Empty: true})
	require.NoError(t, err)
	of(threads[0])
	require.Empty(t, outlines.all)
	require.Zero(t, outlines.size)
}
