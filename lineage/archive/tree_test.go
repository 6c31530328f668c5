package archive

import (
	"reflect"
	"runtime"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/scratch"
)

// A large tree whose nodes are made again is that with all of its nodes, each time.
//
//test:norace
func TestTreesOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := func(raw []byte) Node {
			stated := strings.Split(rawjson.Str(raw), " ")
			return Node{ID: stated[0], Parent: stated[1], Role: stated[2], Body: raw}
		}
		again, whole := Tree{Node: node}, Tree{}
		w := scratch.TextWriter{Most: rapid.SampledFrom([]int{0, 1}).Draw(t, "in memory")}
		texts, ends := make([]Node, 0), make([]int, 1) // zero for one that is skipped
		add := func() {
			text, err := w.Text()
			require.NoError(t, err)
			again.Of = Item{Raw: text.Bytes(), text: text}
			for i, one := range texts {
				if ends[i+1] == ends[i] {
					again.Skip(one.ID, one.Parent)
					whole.Skip(one.ID, one.Parent)
					continue
				}
				raw := text.Bytes()[ends[i]:ends[i+1]]
				again.Add(one, raw, !strings.HasSuffix(rawjson.Str(raw), "unlinked"))
				whole.Add(one, nil, true)
			}
		}
		n := PartNodes + rapid.IntRange(0, 2*PartNodes).Draw(t, "more")
		step := rapid.IntRange(1, 5).Draw(t, "step")
		for i := range n {
			id, parent := strconv.Itoa(i), strconv.Itoa(i-step)
			switch i % 1000 {
			case 3:
				parent = strconv.Itoa(i + 10)
			case 4:
				id = "4"
			case 5:
				id, parent = "", ""
			case 6:
				texts, ends = append(texts, Node{ID: id, Parent: parent}), append(ends, w.Len())
				continue
			case 7:
				parent = "missing"
			case 8:
				raw := rawjson.Quote(id + "  unlinked")
				w.Write(raw)
				found := node(raw)
				found.Parent = strconv.Itoa(i - 1)
				texts, ends = append(texts, found), append(ends, w.Len())
				continue
			}
			raw := rawjson.Quote(id + " " + parent + " message" + strconv.Itoa(i))
			w.Write(raw)
			texts, ends = append(texts, node(raw)), append(ends, w.Len())
		}
		add()
		current := strconv.Itoa(rapid.IntRange(0, n).Draw(t, "current"))
		a, b := Conversation{Current: current}, Conversation{Current: current}
		again.Fill(&a)
		whole.Fill(&b)
		require.Equal(t, b.Repairs, a.Repairs)
		require.Equal(t, b.RepairsMore, a.RepairsMore)
		var want []Node
		for nodes := range b.Parts() {
			want = append(want, nodes...)
		}
		for range 2 {
			var got []Node
			for nodes := range a.Parts() {
				require.LessOrEqual(t, len(nodes), PartNodes)
				got = append(got, nodes...)
			}
			for i := range got {
				at, from := reflect.ValueOf(got[i].Body).Pointer(), reflect.ValueOf(again.Of.Raw).Pointer()
				require.False(t, again.Of.isMapped() && at >= from && at < from+uintptr(len(again.Of.Raw)), "a node has its own text")
			}
			require.True(t, slices.EqualFunc(want, got, func(a, b Node) bool {
				return a.ID == b.ID && a.Parent == b.Parent && a.Root == b.Root && a.Role == b.Role && string(a.Body) == string(b.Body)
			}))
		}
	})
}

// A message of a large conversation costs few bytes, which a collection of garbage does not read.
func TestTreesOfManyAreSmall(t *testing.T) {
	const n = 1 << 17
	w := scratch.TextWriter{Most: 1}
	ends := []int{0}
	for i := range n {
		w.Write(rawjson.Quote(strconv.Itoa(i) + " " + strconv.Itoa(i-1)))
		ends = append(ends, w.Len())
	}
	text, err := w.Text()
	require.NoError(t, err)
	if !text.Mapped() {
		t.Skip("no file can be mapped here")
	}
	node := func(raw []byte) Node {
		id, parent, _ := strings.Cut(rawjson.Str(raw), " ")
		return Node{ID: id, Parent: parent, Body: raw}
	}
	before, readBefore := liveHeap()
	tree := Tree{Node: node, Of: Item{Raw: text.Bytes(), text: text}}
	for i := range n {
		raw := text.Bytes()[ends[i]:ends[i+1]]
		tree.Add(node(raw), raw, true)
	}
	var c Conversation
	tree.Fill(&c)
	after, readAfter := liveHeap()
	require.LessOrEqual(t, treeMessageSize, int64(20))
	first := 2 * NodesSize(c.Nodes)
	require.Less(t, after-before, n*treeMessageSize*5/4+first)
	require.Less(t, readAfter-readBefore, n+first)
	runtime.KeepAlive(&c)
}

// liveHeap returns the bytes that are in use, and those of them that a collection of garbage reads.
func liveHeap() (live, read int64) {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()), int64(s[1].Value.Uint64())
}
