package importer

import (
	"context"
	"math/rand/v2"
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
			moved = append(moved, l.change(i))
		}
	}
	for i := range int32(l.len()) {
		require.Equal(t, uint32(i), l.at(i).mark)
		if i >= nodesInPiece {
			require.Same(t, moved[i-nodesInPiece], l.change(i))
		}
	}
}

// A list has what was stated last of each node, whether its pieces are chains or not.
func TestChains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l nodeList
		var want []loaded
		add := func(n loaded) {
			require.EqualValues(t, len(want), l.add(n))
			want = append(want, n)
		}
		timed, breaks := rapid.Bool().Draw(t, "timed"), rapid.IntRange(0, 2).Draw(t, "breaks")
		size := rapid.IntRange(2*nodesInPiece, 4*nodesInPiece).Draw(t, "size")
		for i := range int32(size) {
			n := loaded{seq: 7 + uint64(i), run: 1, parent: i - 1, mark: uint32(i) * 77, kids: true}
			if timed {
				n.created = int64(i/3) * 1000
			}
			add(n)
		}
		index := rapid.Int32Range(0, int32(size)-1)
		for range breaks {
			i := index.Draw(t, "broken")
			want[i].run, want[i].kept = 2, true
			n := l.change(i)
			n.run, n.kept = 2, true
		}
		for i := range int32(2 * nodesInPiece) { // later pieces are chains although earlier ones are not
			at := int32(size) + i
			add(loaded{seq: uint64(i), run: 3, parent: at - 1, created: 5, kids: at%nodesInPiece < nodesInPiece-1, aside: 1})
		}
		var visited [3]map[int32]bool
		for round := range uint32(2) {
			visited[round+1] = make(map[int32]bool)
			for range rapid.IntRange(0, 3).Draw(t, "walks") {
				for i, steps := index.Draw(t, "from"), rapid.IntRange(0, 5000).Draw(t, "steps"); i >= 0 && steps > 0; i, steps = i-1, steps-1 {
					visited[round+1][i] = true
					l.visit(i, round+1)
				}
			}
			for i, n := range want {
				got := l.at(int32(i))
				require.Equal(t, visited[round+1][int32(i)], got.visited == round+1)
				got.visited = 0
				require.Equal(t, n, got)
			}
		}
		require.Len(t, want, l.len())
	})
}

// A list equals a slice in any order of additions, changes, visits and rounds, as when a commit is filled again or an input
// grows.
func TestChainsInAnyOrder(t *testing.T) {
	chains := 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var l nodeList
		var want []loaded
		round := uint32(1)
		check := func(i int) {
			got, is := l.at(int32(i)), want[i]
			require.Equal(t, is.visited == round, got.visited == round)
			got.visited, is.visited = 0, 0
			require.Equal(t, is, got)
		}
		for len(want) < 5*nodesInPiece {
			switch r.IntN(8) {
			default: // a stretch that a chain may have
				for range r.IntN(2 * nodesInPiece) {
					n := loaded{seq: uint64(len(want)), run: 1, parent: int32(len(want)) - 1, mark: r.Uint32(), kids: true, created: int64(len(want) / 900)}
					require.EqualValues(t, len(want), l.add(n))
					want = append(want, n)
				}
			case 0, 1:
				for range 1 + r.IntN(3) {
					if len(want) == 0 {
						break
					}
					i := r.IntN(len(want))
					if r.IntN(2) == 0 {
						i = min(len(want), (i/nodesInPiece+1)*nodesInPiece) - 1 // the end of a piece
					}
					change := []func(*loaded){
						func(n *loaded) { n.kids = !n.kids }, func(n *loaded) { n.kept = true }, func(n *loaded) { n.foreign = true },
						func(n *loaded) { n.seq, n.run = n.seq+1, 2 }, func(n *loaded) {}, func(n *loaded) { n.adopted, n.parent = true, -1 },
					}[r.IntN(6)]
					change(&want[i])
					change(l.change(int32(i)))
				}
			case 2, 3:
				if len(want) > 0 {
					for i, steps := r.IntN(len(want)), r.IntN(2*nodesInPiece); i >= 0 && steps > 0; i, steps = i-1, steps-1 {
						want[i].visited = round
						l.visit(int32(i), round)
					}
				}
			case 4:
				round++
			}
			if len(want) > 0 {
				check(r.IntN(len(want)))
			}
			require.Equal(t, len(want), l.len())
		}
		for i := range want {
			check(i)
		}
		for _, p := range l.pieces {
			if p.chain != nil {
				chains++
			}
		}
	})
	require.Positive(t, chains)
}

// A message that follows the one before takes few bytes.
func TestChainsAreSmall(t *testing.T) {
	var l nodeList
	for i := range int32(10 * nodesInPiece) {
		l.add(loaded{seq: uint64(i), parent: i - 1, created: int64(i), kids: true, run: 1})
	}
	chains := 0
	for _, p := range l.pieces {
		if p.chain != nil {
			chains++
			require.LessOrEqual(t, 4*cap(p.chain.marks)+8*cap(p.chain.created), 12*nodesInPiece)
			require.Nil(t, p.nodes)
		}
	}
	require.Equal(t, 9, chains)
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
			st.setRef(i, ref)
			want = append(want, ref)
			again := rapid.Int32Range(0, i).Draw(t, "again")
			want[again].Seq++
			st.setRef(again, want[again])
			for k := range want {
				require.Equal(t, want[k], st.refOf(int32(k)))
			}
		}
	})
	st := &loading{runs: make([]structure.RunID, 1)}
	a, b := structure.NewID[structure.RunID](), structure.NewID[structure.RunID]()
	for i := range int32(1000) {
		st.nodes.add(loaded{parent: i - 2})
		st.setRef(i, structure.SpanRef{Run: []structure.RunID{a, b}[i%2], Seq: uint64(i)})
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
