package importer

import (
	"context"
	"runtime"
	"runtime/metrics"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

// A list of nodes has each of them, and moves none after the first piece.
func TestNodeList(t *testing.T) {
	var l nodeList
	require.Zero(t, l.len())
	var moved []*loaded
	for i := range int32(3*nodesInPiece + 5) {
		if i%600 == 0 {
			l.grow(600)
		}
		require.Equal(t, i, l.add(loaded{mark: uint32(i)}))
		require.Equal(t, int(i)+1, l.len())
		if i >= nodesInPiece {
			moved = append(moved, l.at(i))
		}
	}
	for i := range int32(l.len()) {
		require.Equal(t, uint32(i), l.at(i).mark)
		if i >= nodesInPiece {
			require.Same(t, moved[i-nodesInPiece], l.at(i))
		}
	}
}

// Nodes have the spans that were set last, in any order of runs, and runs that are continued are kept once.
func TestRefs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st := &loading{runs: make([]structure.RunID, 1)}
		runs := make([]structure.RunID, 3)
		for i := range runs {
			runs[i] = structure.NewID[structure.RunID]()
		}
		var want []structure.SpanRef
		for i := range int32(rapid.IntRange(1, 50).Draw(t, "nodes")) {
			st.nodes.add(loaded{parent: rapid.Int32Range(-1, i-1).Draw(t, "parent")})
			require.True(t, st.refOf(i).IsZero())
			ref := structure.SpanRef{Run: rapid.SampledFrom(runs).Draw(t, "run"), Seq: rapid.Uint64().Draw(t, "place")}
			st.setRef(st.nodes.at(i), ref)
			want = append(want, ref)
			again := rapid.Int32Range(0, i).Draw(t, "again")
			want[again].Seq++
			st.setRef(st.nodes.at(again), want[again])
			for k := range want {
				require.Equal(t, want[k], st.refOf(int32(k)))
			}
		}
	})
	st := &loading{runs: make([]structure.RunID, 1)}
	a, b := structure.NewID[structure.RunID](), structure.NewID[structure.RunID]()
	for i := range int32(1000) {
		st.nodes.add(loaded{parent: i - 2})
		st.setRef(st.nodes.at(i), structure.SpanRef{Run: []structure.RunID{a, b}[i%2], Seq: uint64(i)})
	}
	require.Equal(t, []structure.RunID{{}, a, b}, st.runs)
}

// A message of a large conversation costs few bytes, which a collection of garbage does not read.
func TestMessagesAreSmall(t *testing.T) {
	const n = 20_000
	store, err := lineage.Open(context.Background(), t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	l := newLoader(context.Background(), store, Options{})
	for i := 0; i < n; i += archive.PartNodes {
		c := &archive.Conversation{SourceID: "c", More: true}
		for k := i; k < min(n, i+archive.PartNodes); k++ {
			c.Nodes = append(c.Nodes, archive.Node{ID: strconv.Itoa(k), Role: "user", Body: []byte(strconv.Itoa(k))})
		}
		require.NoError(t, l.conversation(c))
	}
	require.NoError(t, l.flush())
	require.Equal(t, n, l.open.nodes.len())
	heap := func() (live, read int64) {
		runtime.GC()
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
		metrics.Read(s)
		return int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())
	}
	live, read := heap()
	require.Len(t, l.open.byID, n)
	l.open.byID, l.open.nodes = nil, nodeList{}
	left, leftRead := heap()
	require.Less(t, live-left, int64(82*n))
	require.Less(t, read-leftRead, int64(n))
	l.close()
}
