package structure_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/structure"
)

// forest is a set of runs and, for comparison, the whole history of each span.
type forest struct {
	runs      map[structure.RunID]structure.RunInfo
	histories map[structure.SpanRef][]structure.SpanRef
	spans     []structure.SpanRef
	lookups   int
}

var errNoRun = errors.New("no such run")

func (f *forest) run(id structure.RunID) (structure.RunInfo, error) {
	f.lookups++
	run, ok := f.runs[id]
	if !ok {
		return structure.RunInfo{}, errNoRun
	}
	return run, nil
}

// grow adds a run of some spans after the parent and returns its last span.
func (f *forest) grow(parent structure.SpanRef, spans int) structure.SpanRef {
	run := structure.RunID{byte(len(f.runs) >> 8), byte(len(f.runs)), 1}
	history := f.histories[parent]
	f.runs[run] = structure.RunInfo{Run: structure.Run{ID: run, Parent: parent}, Depth: uint64(len(history))}
	for i := range spans {
		ref := structure.SpanRef{Run: run, Seq: uint64(i + 1)}
		history = append(slices.Clip(history), ref)
		f.histories[ref] = history
		f.spans = append(f.spans, ref)
	}
	return f.spans[len(f.spans)-1]
}

func newForest() *forest {
	return &forest{
		runs:      map[structure.RunID]structure.RunInfo{},
		histories: map[structure.SpanRef][]structure.SpanRef{},
	}
}

func forests() *rapid.Generator[*forest] {
	return rapid.Custom(func(t *rapid.T) *forest {
		f := newForest()
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			var parent structure.SpanRef
			if len(f.spans) > 0 && rapid.IntRange(0, 4).Draw(t, "root") > 0 {
				parent = f.span(t, "parent")
			}
			f.grow(parent, rapid.IntRange(1, 5).Draw(t, "spans"))
		}
		return f
	})
}

func (f *forest) span(t *rapid.T, name string) structure.SpanRef {
	return rapid.SampledFrom(f.spans).Draw(t, name)
}

func windows() *rapid.Generator[structure.Window] {
	small, huge := rapid.Uint64Range(0, 20), rapid.Uint64Range(math.MaxUint64-1, math.MaxUint64)
	edge := rapid.OneOf(rapid.Just(uint64(0)), small, small, huge)
	return rapid.Custom(func(t *rapid.T) structure.Window {
		return structure.Window{From: edge.Draw(t, "from"), To: edge.Draw(t, "to"), Last: edge.Draw(t, "last")}
	})
}

func TestEveryWindow(t *testing.T) {
	f := newForest()
	tip := f.grow(structure.SpanRef{}, 3)
	tip = f.grow(tip, 1)
	tip = f.grow(f.grow(tip, 3), 2) // from its last span
	tip = f.grow(structure.SpanRef{Run: tip.Run, Seq: 1}, 2)
	history := f.histories[tip]
	require.Len(t, history, 10)
	for from := range uint64(13) {
		for to := range uint64(13) {
			for last := range uint64(13) {
				w := structure.Window{From: from, To: to, Last: last}
				segments, err := structure.Segments(tip, w, f.run)
				require.NoError(t, err)
				for _, s := range segments {
					require.True(t, 1 <= s.First && s.First <= s.Last, "%+v: a segment is %d to %d", w, s.First, s.Last)
				}
				require.Equal(t, cut(history, w), spell(segments), "%+v", w)
			}
		}
	}
}

// cut returns the part of a history that is in a window.
func cut(history []structure.SpanRef, w structure.Window) []structure.SpanRef {
	var kept []structure.SpanRef
	for i, ref := range history {
		if p := uint64(i + 1); p >= w.From && (w.To == 0 || p <= w.To) {
			kept = append(kept, ref)
		}
	}
	if w.Last != 0 && uint64(len(kept)) > w.Last {
		kept = kept[uint64(len(kept))-w.Last:]
	}
	return kept
}

func spell(segments []structure.Segment) []structure.SpanRef {
	var refs []structure.SpanRef
	for _, s := range segments {
		for seq := s.First; seq <= s.Last; seq++ {
			refs = append(refs, structure.SpanRef{Run: s.Run.ID, Seq: seq})
		}
	}
	return refs
}

func TestSegmentsCoverHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := forests().Draw(t, "forest")
		tip, w := f.span(t, "tip"), windows().Draw(t, "window")
		want := cut(f.histories[tip], w)

		segments, err := structure.Segments(tip, w, f.run)
		require.NoError(t, err)
		require.Equal(t, want, spell(segments))
		var total uint64
		for i, s := range segments {
			require.Equal(t, f.runs[s.Run.ID], s.Run)
			require.True(t, 1 <= s.First && s.First <= s.Last, "segment %d is %d to %d", i, s.First, s.Last)
			total += s.Len()
			if i > 0 {
				require.NotEqual(t, segments[i-1].Run.ID, s.Run.ID)
			}
		}
		require.EqualValues(t, len(want), total)

		// One lookup per run from the tip's to that of the window's start.
		passed := map[structure.RunID]bool{tip.Run: true}
		if len(want) > 0 {
			for _, ref := range f.histories[tip][slices.Index(f.histories[tip], want[0]):] {
				passed[ref.Run] = true
			}
		}
		require.Equal(t, len(passed), f.lookups)
	})
}

func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := forests().Draw(t, "forest")
		tip := f.span(t, "tip")
		history := f.histories[tip]

		n, err := structure.Position(tip, f.run)
		require.NoError(t, err)
		require.EqualValues(t, len(history), n)
		for i, want := range history {
			got, err := structure.At(tip, uint64(i+1), f.run)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		got, err := structure.At(tip, 0, f.run)
		require.NoError(t, err)
		require.True(t, got.IsZero())
		for _, beyond := range []uint64{n + 1, math.MaxUint64} {
			_, err = structure.At(tip, beyond, f.run)
			require.ErrorIs(t, err, structure.ErrOutOfRange)
		}
	})
}

func TestCommonAncestors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := forests().Draw(t, "forest")
		a, b := f.span(t, "a"), f.span(t, "b")
		var want structure.SpanRef
		for _, ref := range f.histories[a] {
			if slices.Contains(f.histories[b], ref) {
				want = ref
			}
		}
		got, err := structure.CommonAncestor(a, b, f.run)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.LessOrEqual(t, f.lookups, len(f.runs)+1, "each run is looked up once")
		got, err = structure.CommonAncestor(b, a, f.run)
		require.NoError(t, err)
		require.Equal(t, want, got)

		found, err := structure.IsAncestor(a, b, f.run)
		require.NoError(t, err)
		require.Equal(t, slices.Contains(f.histories[b], a), found)
	})
}

func TestTheEmptyPosition(t *testing.T) {
	var empty structure.SpanRef
	f := newForest()
	tip := f.grow(empty, 3)

	n, err := structure.Position(empty, f.run)
	require.NoError(t, err)
	require.Zero(t, n)
	segments, err := structure.Segments(empty, structure.Window{}, f.run)
	require.NoError(t, err)
	require.Empty(t, segments)
	_, err = structure.At(empty, 1, f.run)
	require.ErrorIs(t, err, structure.ErrOutOfRange)
	for _, pair := range [][2]structure.SpanRef{{empty, tip}, {tip, empty}, {empty, empty}} {
		common, err := structure.CommonAncestor(pair[0], pair[1], f.run)
		require.NoError(t, err)
		require.True(t, common.IsZero())
		got, err := structure.IsAncestor(pair[0], pair[1], f.run)
		require.NoError(t, err)
		require.Equal(t, pair[0].IsZero(), got, "%v on the history of %v", pair[0], pair[1])
	}
}

func TestUnknownRuns(t *testing.T) {
	f := newForest()
	known := f.grow(f.grow(structure.SpanRef{}, 3), 1)
	delete(f.runs, f.spans[0].Run) // the root
	for _, tip := range []structure.SpanRef{known, {Run: structure.RunID{9, 9}, Seq: 1}} {
		_, err := structure.Segments(tip, structure.Window{}, f.run)
		require.ErrorIs(t, err, errNoRun)
		_, err = structure.At(tip, 1, f.run)
		require.ErrorIs(t, err, errNoRun)
		_, err = structure.CommonAncestor(tip, f.spans[0], f.run)
		require.ErrorIs(t, err, errNoRun)
		got, err := structure.IsAncestor(f.spans[0], tip, f.run)
		require.ErrorIs(t, err, errNoRun)
		require.False(t, got)
	}
	n, err := structure.Position(structure.SpanRef{Run: structure.RunID{9, 9}, Seq: 5}, f.run)
	require.ErrorIs(t, err, errNoRun)
	require.Zero(t, n)
}

func TestBrokenAncestry(t *testing.T) {
	root, child, stranger := structure.RunID{1}, structure.RunID{2}, structure.RunID{3}
	place := func(run structure.RunID, seq uint64) structure.SpanRef { return structure.SpanRef{Run: run, Seq: seq} }
	tests := []struct {
		name          string
		root, child   structure.RunInfo // 3 spans, and 2 after the second of them
		childsHistory bool              // only the child's history is broken
	}{
		{"own parent", info(structure.SpanRef{}, 0), info(place(child, 2), 2), true},
		{"own parent without a place", info(structure.SpanRef{}, 0), info(place(child, 0), 2), true},
		{"parent without a place", info(structure.SpanRef{}, 0), info(place(root, 0), 0), true},
		{"parent of a wrong place", info(structure.SpanRef{}, 0), info(place(root, 1), 2), true},
		{"parent forgotten", info(structure.SpanRef{}, 0), info(structure.SpanRef{}, 2), true},
		{"depth forgotten", info(structure.SpanRef{}, 0), info(place(root, 2), 0), true},
		{"depth too small", info(structure.SpanRef{}, 0), info(place(root, 2), 1), true},
		{"depth too large", info(structure.SpanRef{}, 0), info(place(root, 2), 3), true},
		{"depth that overflows", info(structure.SpanRef{}, 0), info(place(root, 2), math.MaxUint64), true},
		{"root with a depth", info(structure.SpanRef{}, 1), info(place(root, 2), 3), false},
		{"two that follow each other", info(place(child, 1), 3), info(place(root, 2), 5), false},
		{"two that agree by overflow", info(place(child, 1), 3), info(place(root, math.MaxUint64), 2), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newForest()
			tt.root.ID, tt.child.ID = root, child
			f.runs[root], f.runs[child] = tt.root, tt.child
			f.runs[stranger] = structure.RunInfo{Run: structure.Run{ID: stranger}}
			lookup := func(id structure.RunID) (structure.RunInfo, error) {
				require.Less(t, f.lookups, 100, "it loops")
				return f.run(id)
			}
			tip := place(child, 2)
			_, err := structure.Segments(tip, structure.Window{}, lookup)
			require.ErrorIs(t, err, structure.ErrBrokenAncestry)
			_, err = structure.At(tip, 1, lookup)
			require.ErrorIs(t, err, structure.ErrBrokenAncestry)
			_, err = structure.CommonAncestor(place(stranger, 1), tip, lookup)
			require.ErrorIs(t, err, structure.ErrBrokenAncestry)
			got, err := structure.IsAncestor(place(stranger, 1), tip, lookup)
			require.ErrorIs(t, err, structure.ErrBrokenAncestry)
			require.False(t, got)
			_, err = structure.Segments(place(root, 3), structure.Window{}, lookup)
			if tt.childsHistory {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, structure.ErrBrokenAncestry)
			}
		})
	}
}

func info(parent structure.SpanRef, depth uint64) structure.RunInfo {
	return structure.RunInfo{Run: structure.Run{Parent: parent}, Depth: depth}
}

func TestPlacesOutsideHistories(t *testing.T) {
	f := newForest()
	child := f.grow(f.grow(structure.SpanRef{}, 3), 2)
	for _, tip := range []structure.SpanRef{{Run: child.Run}, {Run: child.Run, Seq: math.MaxUint64}} {
		_, err := structure.Position(tip, f.run)
		require.ErrorIs(t, err, structure.ErrBrokenAncestry)
		_, err = structure.Segments(tip, structure.Window{}, f.run)
		require.ErrorIs(t, err, structure.ErrBrokenAncestry)
		_, err = structure.CommonAncestor(tip, child, f.run)
		require.ErrorIs(t, err, structure.ErrBrokenAncestry)
	}
}

// Any damage is found or gives a consistent answer; it never causes a loop.
func TestDamagedAncestryEnds(t *testing.T) {
	edge := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(math.MaxUint64-20, math.MaxUint64))
	rapid.Check(t, func(t *rapid.T) {
		f := forests().Draw(t, "forest")
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			run := f.runs[f.span(t, "damaged").Run]
			if rapid.Bool().Draw(t, "damage depth") {
				run.Depth = edge.Draw(t, "depth")
			}
			if rapid.Bool().Draw(t, "damage parent") {
				run.Parent = structure.SpanRef{Run: f.span(t, "parent").Run, Seq: edge.Draw(t, "place")}
			}
			f.runs[run.ID] = run
		}
		lookup := func(id structure.RunID) (structure.RunInfo, error) {
			require.LessOrEqual(t, f.lookups, 2*len(f.runs), "it loops")
			return f.run(id)
		}
		tip, w := f.span(t, "tip"), windows().Draw(t, "window")
		segments, err := structure.Segments(tip, w, lookup)
		if err != nil {
			require.ErrorIs(t, err, structure.ErrBrokenAncestry)
			require.Nil(t, segments)
		}
		for i, s := range segments {
			require.LessOrEqual(t, s.First, s.Last)
			if i > 0 {
				last := segments[i-1]
				require.Equal(t, last.Run.Position(last.Last)+1, s.Run.Position(s.First))
				require.Equal(t, structure.SpanRef{Run: last.Run.ID, Seq: last.Last}, s.Run.Parent)
			}
		}
		f.lookups = 0
		if _, err = structure.CommonAncestor(tip, f.span(t, "other"), lookup); err != nil {
			require.ErrorIs(t, err, structure.ErrBrokenAncestry)
		}
	})
}

// chain returns the lookup of consecutive runs of one span each, from run 1,
// whose ids are their numbers.
func chain() structure.RunLookup {
	return func(id structure.RunID) (structure.RunInfo, error) {
		n := uint64(id[0]) | uint64(id[1])<<8 | uint64(id[2])<<16
		info := structure.RunInfo{Run: structure.Run{ID: id}, Depth: n - 1}
		if n > 1 {
			info.Parent = structure.SpanRef{Run: link(n - 1), Seq: 1}
		}
		return info, nil
	}
}

func link(n uint64) structure.RunID { return structure.RunID{byte(n), byte(n >> 8), byte(n >> 16)} }

func TestDeepChainsDoNotRecurse(t *testing.T) {
	const n = 100_000
	base, lookups, deepest := chain(), 0, 0
	lookup := func(id structure.RunID) (structure.RunInfo, error) {
		var callers [64]uintptr
		lookups, deepest = lookups+1, max(deepest, runtime.Callers(0, callers[:]))
		if id[3] != 0 { // a second run after the middle of the chain
			return structure.RunInfo{
				Run: structure.Run{ID: id, Parent: structure.SpanRef{Run: link(n / 2), Seq: 1}}, Depth: n / 2,
			}, nil
		}
		return base(id)
	}
	tip := structure.SpanRef{Run: link(n), Seq: 1}
	segments, err := structure.Segments(tip, structure.Window{}, lookup)
	require.NoError(t, err)
	require.Len(t, segments, n)
	require.Equal(t, n, lookups)
	for i, s := range segments {
		if s.Run.ID != link(uint64(i+1)) || s.First != 1 || s.Last != 1 {
			require.Fail(t, "wrong segment", "%d: %+v", i, s)
		}
	}
	lookups = 0
	first, err := structure.At(tip, n-9, lookup)
	require.NoError(t, err)
	require.Equal(t, structure.SpanRef{Run: link(n - 9), Seq: 1}, first)
	require.Equal(t, 10, lookups)

	common, err := structure.CommonAncestor(structure.SpanRef{Run: structure.RunID{3: 1}, Seq: 4}, tip, lookup)
	require.NoError(t, err)
	require.Equal(t, structure.SpanRef{Run: link(n / 2), Seq: 1}, common)
	require.Less(t, deepest, 32)
}

func BenchmarkSegments(b *testing.B) {
	for _, runs := range []uint64{1, 10, 1000} {
		b.Run(fmt.Sprint(runs, " runs"), func(b *testing.B) {
			lookup := chain()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := structure.Segments(structure.SpanRef{Run: link(runs), Seq: 1}, structure.Window{}, lookup); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
