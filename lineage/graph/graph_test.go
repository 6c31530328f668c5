//test:race

package graph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// randomGraph returns a graph of random forks, with an active branch and names.
func randomGraph(t *rapid.T) *Graph {
	g := New()
	var lines []*Line
	for range rapid.IntRange(1, 30).Draw(t, "lines") {
		l := &Line{Last: rapid.Uint64Range(1, 6).Draw(t, "messages")}
		if len(lines) > 0 && rapid.IntRange(0, 5).Draw(t, "root") > 0 {
			parent := rapid.SampledFrom(lines).Draw(t, "parent")
			l.After = parent.At(rapid.Uint64Range(1, parent.Last).Draw(t, "after"))
			l.Before = l.After.Position()
		}
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(a, b *Line) int { return int(a.Before) - int(b.Before) })
	for _, l := range lines {
		g.Add(l)
	}
	if rapid.Bool().Draw(t, "active") {
		l := rapid.SampledFrom(lines).Draw(t, "current")
		g.SetCurrent(l.At(rapid.Uint64Range(1, l.Last).Draw(t, "at")))
		g.Label(g.Current, Label{Kind: KindBranch, Name: "main", Active: true})
	}
	for i := range rapid.IntRange(0, 5).Draw(t, "names") {
		l := rapid.SampledFrom(lines).Draw(t, "named")
		g.Label(l.At(rapid.Uint64Range(1, l.Last).Draw(t, "at")), Label{Kind: KindCheckpoint, Name: fmt.Sprint(i)})
	}
	return g
}

// Every message where something happens has one row; edges lead down the histories and cover what is folded; what is on
// one lane does not overlap; the active history is on lane 0; and what finds no lane is counted.
func TestDrawings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		o := Options{Lanes: rapid.IntRange(0, 4).Draw(t, "lanes")}
		d := g.Draw(o)
		seen := make(map[Place]int)
		has := func(at Place) bool { _, is := seen[at]; return is }
		hidden := 0
		for i, r := range d.Rows {
			require.False(t, has(r.Place), "a message has two rows")
			seen[r.Place] = i
			hidden += r.Hidden
			require.Equal(t, g.Labels[r.Place], r.Labels)
			require.Less(t, r.Lane, d.Lanes)
			if r.Current {
				require.Equal(t, g.Current, r.Place)
				require.Zero(t, r.Lane)
			}
			if o.Lanes > 0 {
				require.Less(t, r.Lane, o.Lanes)
			}
		}
		above := make(map[int]bool)
		for _, e := range d.Edges {
			from, to := d.Rows[e.From], d.Rows[e.To]
			require.Less(t, e.From, e.To)
			require.False(t, above[e.To], "a message has two before it")
			above[e.To] = true
			require.Equal(t, to.Position()-from.Position()-1, to.Folded)
			for i := e.From + 1; i < e.To; i++ {
				require.False(t, d.Rows[i].Lane == to.Lane && d.Rows[i].Position() > from.Position(), "something is on the way of an edge")
			}
		}
		for i, r := range d.Rows {
			require.Equal(t, r.Root, !above[i])
		}
		if g.Current.Line != nil {
			require.True(t, has(g.Current))
		}
		for l := range g.Lines() {
			if o.Lanes > 0 {
				break
			}
			if l.Main == 0 || l.After.Line == nil { // else the active history only passes its beginning
				require.True(t, has(l.At(1)))
			}
			if l.Main < l.Last || l == g.Current.Line {
				require.True(t, has(l.At(l.Last)))
			}
		}
		if o.Lanes == 0 {
			require.Zero(t, hidden)
		}
		for at := range g.Labels {
			if !has(at) {
				require.Positive(t, hidden)
			}
		}
	})
}

// A drawing can be limited to the lines with certain names, and what leads to them.
func TestDrawingOfNames(t *testing.T) {
	g := New()
	root := &Line{Last: 10}
	g.Add(root)
	for i := range 1000 {
		l := &Line{After: root.At(5), Before: 5, Last: 2}
		g.Add(l)
		g.Label(l.At(2), Label{Kind: KindBranch, Name: fmt.Sprint("b", i)})
	}
	g.SetCurrent(root.At(10))
	d := g.Draw(Options{Lanes: 40})
	require.Equal(t, 40, d.Lanes)
	require.Equal(t, 1000-39, d.Rows[1].Hidden)
	d = g.Draw(Options{Lanes: 40, Want: func(l Label) bool { return l.Name == "b777" }})
	require.Equal(t, 2, d.Lanes)
	require.Equal(t, 999, d.Rows[1].Hidden)
	require.Equal(t, "b777", d.Rows[3].Labels[0].Name)
	require.Equal(t, uint64(3), d.Rows[1].Folded)
}

// Two threads with equal ids of messages, one a fork of the other, have graphs of their own.
func TestGraphsOfThreads(t *testing.T) {
	ctx := t.Context()
	s := lineagetest.New(t, lineage.Options{})
	var threads []*lineage.Thread
	for i := range 2 {
		thread, err := s.CreateThread(ctx, lineage.ThreadOptions{SourceID: fmt.Sprint(i), UserID: fmt.Sprint("user ", i)})
		require.NoError(t, err)
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		_, err = main.Extend(ctx, lineage.User("a").WithID("1"), lineage.Assistant("b").WithID("2"), lineage.User("c").WithID("3"))
		require.NoError(t, err)
		threads = append(threads, thread)
	}
	info, err := threads[0].Info(ctx)
	require.NoError(t, err)
	main, err := s.Context(ctx, info.Active)
	require.NoError(t, err)
	tip, err := main.Tip(ctx)
	require.NoError(t, err)
	second, err := s.At(ctx, tip, 2)
	require.NoError(t, err)
	_, err = threads[0].CreateBranch(ctx, "other", lineage.BranchOptions{At: second})
	require.NoError(t, err)
	g, err := Of(ctx, s, threads[0])
	require.NoError(t, err)
	require.Len(t, g.Labels, 2)
	require.Equal(t, uint64(3), g.Current.Position())
	require.Equal(t, "other", g.Labels[g.Place(second)][0].String())
	g, err = Of(ctx, s, threads[1])
	require.NoError(t, err)
	require.Len(t, g.Labels, 1)
	require.Zero(t, g.Place(second))
}
