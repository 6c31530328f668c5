package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// said returns what a graph says, in a fixed order.
func said(g *Graph) string {
	var all []string
	for l := range g.Lines() {
		all = append(all, fmt.Sprintf("line %v after %v, %d before, last %d, main %d, forks %d", l.Run, l.After.Ref(), l.Before, l.Last, l.Main, len(l.Forks)))
	}
	rest := len(all)
	for at, labels := range g.Labels {
		for _, l := range labels {
			all = append(all, fmt.Sprintf("%v at %v", l, at.Ref()))
		}
	}
	slices.Sort(all[rest:])
	return strings.Join(append(all, fmt.Sprint("current ", g.Current.Ref())), "\n")
}

func (l *Live) said(t require.TestingT, id lineage.ThreadID) (text string) {
	require.NoError(t, l.Read(context.Background(), id, func(g *Graph) error { text = said(g); return nil }))
	return text
}

// Whatever happens to a store, graphs that are kept are those that would be read, for several readers of several threads
// that look at different times.
func TestLive(t *testing.T) {
	ctx := context.Background()
	s := lineagetest.New(t, lineage.Options{})
	rapid.Check(t, func(t *rapid.T) {
		readers := []*Live{NewLive(s), NewLive(s)}
		readers[1].limit = rapid.SampledFrom([]int{5, 20, maxKept}).Draw(t, "limit")
		threads := make([]*lineage.Thread, 2)
		for i := range threads {
			var err error
			threads[i], err = s.CreateThread(ctx, lineage.ThreadOptions{})
			require.NoError(t, err)
		}
		for n := range rapid.IntRange(1, 25).Draw(t, "steps") {
			thread := rapid.SampledFrom(threads).Draw(t, "thread")
			var contexts []*lineage.Context
			for c, err := range thread.Contexts(ctx) {
				require.NoError(t, err)
				contexts = append(contexts, c)
			}
			c := rapid.SampledFrom(contexts).Draw(t, "context")
			tip, err := c.Tip(ctx)
			require.NoError(t, err)
			length, err := c.Len(ctx)
			require.NoError(t, err)
			at := tip
			if length > 0 {
				at, err = s.At(ctx, tip, rapid.Uint64Range(1, length).Draw(t, "at"))
				require.NoError(t, err)
			}
			switch rapid.SampledFrom([]string{"extend", "extend", "extend", "branch", "fork", "move", "switch", "checkpoint", "delete", "rename"}).Draw(t, "step") {
			case "extend":
				_, err = c.Extend(ctx, lineage.User(fmt.Sprint("a", n)), lineage.User(fmt.Sprint("b", n)))
			case "branch":
				_, err = thread.CreateBranch(ctx, fmt.Sprint("b", n), lineage.BranchOptions{At: at})
			case "fork":
				_, err = c.Fork(ctx, lineage.ForkOptions{At: at, Metadata: []byte(`{"made_by":"subagent"}`)})
			case "move":
				err = c.MoveTo(ctx, at, "")
			case "switch":
				branches, failed := thread.Branches(ctx)
				require.NoError(t, failed)
				if len(branches) > 0 {
					err = thread.Switch(ctx, rapid.SampledFrom(branches).Draw(t, "to").Name)
				}
			case "checkpoint":
				if length > 0 {
					_, err = thread.SetCheckpoint(ctx, fmt.Sprint("c", n), lineage.CheckpointOptions{At: at})
				}
			case "delete":
				if err = c.Delete(ctx); errors.Is(err, lineage.ErrConflict) { // a branch
					err = nil
				}
			case "rename":
				err = thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title = fmt.Sprint(n); return nil })
			}
			require.NoError(t, err)
			for i, r := range readers {
				if !rapid.Bool().Draw(t, fmt.Sprint("looks ", i)) {
					continue
				}
				seen := rapid.SampledFrom(threads).Draw(t, "looks at")
				g, err := Of(ctx, s, seen)
				require.NoError(t, err)
				require.Equal(t, said(g), r.said(t, seen.ID()))
			}
		}
	})
}

// An append changes one line and one name of a graph that is kept: the graph is not read again, neither after a thousand
// commits of other threads.
func TestLiveAppends(t *testing.T) {
	s := lineagetest.New(t, lineage.Options{})
	thread, err := s.CreateThread(t.Context(), lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	_, err = main.Extend(t.Context(), lineage.User("one"), lineage.User("two"))
	require.NoError(t, err)
	l := NewLive(s)
	l.said(t, thread.ID())
	for n := range 20 {
		_, err = main.Extend(t.Context(), lineage.User(fmt.Sprint(n)))
		require.NoError(t, err)
		g, err := Of(t.Context(), s, thread)
		require.NoError(t, err)
		require.Equal(t, said(g), l.said(t, thread.ID()))
	}
	require.Equal(t, 1, l.reads)
	tip, err := main.Tip(t.Context())
	require.NoError(t, err)
	third, err := s.At(t.Context(), tip, 3)
	require.NoError(t, err)
	other, err := thread.CreateBranch(t.Context(), "other", lineage.BranchOptions{At: third})
	require.NoError(t, err)
	l.said(t, thread.ID())
	require.Equal(t, 2, l.reads)
	_, err = other.Extend(t.Context(), lineage.User("elsewhere")) // a new line
	require.NoError(t, err)
	g, err := Of(t.Context(), s, thread)
	require.NoError(t, err)
	require.Equal(t, said(g), l.said(t, thread.ID()))
	require.Equal(t, 2, l.reads)

	elsewhere, err := s.CreateThread(t.Context(), lineage.ThreadOptions{})
	require.NoError(t, err)
	there, err := elsewhere.Active(t.Context())
	require.NoError(t, err)
	for n := range maxBehind - 10 {
		_, err = there.Extend(t.Context(), lineage.User(fmt.Sprint(n)))
		require.NoError(t, err)
	}
	require.Equal(t, said(g), l.said(t, thread.ID()))
	require.Equal(t, 2, l.reads)
	for n := range maxBehind + 10 {
		_, err = there.Extend(t.Context(), lineage.User(fmt.Sprint("more", n)))
		require.NoError(t, err)
	}
	require.Equal(t, said(g), l.said(t, thread.ID()))
	require.Equal(t, 3, l.reads, "so many commits are not read")
	require.NoError(t, thread.Delete(t.Context()))
	require.ErrorIs(t, l.Read(t.Context(), thread.ID(), func(*Graph) error { return nil }), lineage.ErrNotFound)
}

// Readers of several threads do not disturb one another, nor writers.
func TestLiveConcurrent(t *testing.T) {
	s := lineagetest.New(t, lineage.Options{})
	l := NewLive(s)
	var group sync.WaitGroup
	for range 3 {
		thread, err := s.CreateThread(t.Context(), lineage.ThreadOptions{})
		require.NoError(t, err)
		main, err := thread.Active(t.Context())
		require.NoError(t, err)
		group.Go(func() {
			for n := range 40 {
				_, err := main.Extend(t.Context(), lineage.User(fmt.Sprint(n)))
				if err == nil && n%10 == 0 {
					_, err = thread.CreateBranch(t.Context(), fmt.Sprint(n), lineage.BranchOptions{})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
		for range 2 {
			group.Go(func() {
				last := uint64(0)
				for range 40 {
					err := l.Read(t.Context(), thread.ID(), func(g *Graph) error {
						if got := g.Current.Position(); got < last {
							return fmt.Errorf("position %d after %d", got, last)
						}
						last = g.Current.Position()
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	group.Wait()
}
