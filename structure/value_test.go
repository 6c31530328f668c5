package structure_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/structure"
)

// histories is a tree of runs, with the whole history of each span.
type histories struct {
	runs  map[structure.RunID]structure.RunInfo
	paths map[structure.SpanRef][]structure.SpanRef
	spans []structure.SpanRef // the empty position first
}

func drawHistories(t *rapid.T) *histories {
	h := &histories{
		runs: make(map[structure.RunID]structure.RunInfo), paths: map[structure.SpanRef][]structure.SpanRef{{}: nil},
		spans: []structure.SpanRef{{}},
	}
	for n := range rapid.IntRange(1, 6).Draw(t, "runs") {
		parent := rapid.SampledFrom(h.spans).Draw(t, "parent")
		path := slices.Clone(h.paths[parent])
		run := structure.RunInfo{Run: structure.Run{ID: id[structure.RunID](byte(n + 1)), Parent: parent}, Depth: uint64(len(path))}
		h.runs[run.ID] = run
		for seq := range rapid.IntRange(1, 4).Draw(t, "spans") {
			ref := structure.SpanRef{Run: run.ID, Seq: uint64(seq + 1)}
			path = append(path, ref)
			h.paths[ref] = slices.Clone(path)
			h.spans = append(h.spans, ref)
		}
	}
	return h
}

func (h *histories) lookup(id structure.RunID) (structure.RunInfo, error) {
	if run, ok := h.runs[id]; ok {
		return run, nil
	}
	return structure.RunInfo{}, errNoRun
}

// before reports whether a span is in the history of another, or is the empty
// position.
func (h *histories) before(a, b structure.SpanRef) bool {
	return a.IsZero() || a != b && slices.Contains(h.paths[b], a)
}

func TestSetBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistories(t)
		v := &structure.Value{Seen: rapid.SampledFrom(h.spans).Draw(t, "seen")}
		span := rapid.SampledFrom(h.spans).Draw(t, "span")
		got, err := v.SetBefore(span, h.lookup)
		require.NoError(t, err)
		require.Equal(t, h.before(v.Seen, span), got)

		v.Seen = structure.CollectedSpan
		got, err = v.SetBefore(span, h.lookup)
		require.NoError(t, err)
		require.False(t, got)
	})
	_, err := (&structure.Value{Seen: at(1, 1)}).SetBefore(at(2, 1), (&histories{}).lookup)
	require.ErrorIs(t, err, errNoRun)
	h := &histories{runs: map[structure.RunID]structure.RunInfo{
		id[structure.RunID](2): {Run: structure.Run{ID: id[structure.RunID](2)}},
		id[structure.RunID](3): {Run: structure.Run{ID: id[structure.RunID](3), Parent: at(4, 1)}, Depth: 1},
		id[structure.RunID](4): {Run: structure.Run{ID: id[structure.RunID](4), Parent: at(3, 1)}, Depth: 1},
	}}
	got, err := (&structure.Value{Seen: at(1, 1)}).SetBefore(at(2, 1), h.lookup)
	require.NoError(t, err, "a run that was collected")
	require.False(t, got)
	_, err = (&structure.Value{Seen: at(1, 1)}).SetBefore(at(3, 1), h.lookup)
	require.ErrorIs(t, err, structure.ErrBrokenAncestry, "a circle")
}

func TestInheritedAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistories(t)
		at, base := rapid.SampledFrom(h.spans).Draw(t, "at"), rapid.SampledFrom(h.spans).Draw(t, "base")
		want := base
		if at != base && h.before(at, base) {
			want = at
		}
		got, err := structure.InheritedAt(at, base, h.lookup)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestOwners(t *testing.T) {
	for want, owner := range map[string]structure.Owner{
		"store":           {Scope: structure.StoreScope},
		`application "a"`: {Scope: structure.ApplicationScope, Name: "a"},
		`user "ada"`:      {Scope: structure.UserScope, Name: "ada"},
		"thread 01010101-0101-0101-0101-010101010101":  {Scope: structure.ThreadScope, Thread: id[structure.ThreadID](1)},
		"context 02020202-0202-0202-0202-020202020202": {Scope: structure.ContextScope, Context: id[structure.ContextID](2)},
		"scope 0": {},
	} {
		require.Equal(t, want, owner.String())
		require.Equal(t, want+`: "k"`, structure.ValueKey{Owner: owner, Key: "k"}.Name())
	}
}
