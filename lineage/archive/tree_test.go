package archive

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/scratch"
)

// A large tree whose nodes are made again is that with all of its nodes, each time.
//
//test:norace
func TestTreesOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := func(raw []byte) Node {
			stated := strings.Split(string(raw), " ")
			return Node{ID: stated[0], Parent: stated[1], Role: stated[2], Body: raw}
		}
		again, whole := Tree{Node: node}, Tree{}
		w := scratch.TextWriter{Most: rapid.SampledFrom([]int{0, 1}).Draw(t, "in memory")}
		texts, ends := make([]Node, 0), make([]int, 1) // zero for one that is skipped
		add := func() {
			text, err := w.Text()
			require.NoError(t, err)
			again.Of = Item{Raw: text.Bytes(), text: text}
			for i, is := range texts {
				if ends[i+1] == ends[i] {
					again.Skip(is.ID, is.Parent)
					whole.Skip(is.ID, is.Parent)
					continue
				}
				raw := text.Bytes()[ends[i]:ends[i+1]]
				again.Add(is, raw, !strings.HasSuffix(string(raw), "unlinked"))
				whole.Add(is, nil, true)
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
				raw := id + "  unlinked"
				w.Write([]byte(raw))
				is := node([]byte(raw))
				is.Parent = strconv.Itoa(i - 1)
				texts, ends = append(texts, is), append(ends, w.Len())
				continue
			}
			raw := id + " " + parent + " message" + strconv.Itoa(i)
			w.Write([]byte(raw))
			texts, ends = append(texts, node([]byte(raw))), append(ends, w.Len())
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
