package archive

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A large tree whose nodes are made again is that with all of its nodes, each time.
//
//test:norace
func TestTreesOfMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		node := func(id string, raw []byte) Node { return Node{ID: id, Role: string(raw), Body: raw} }
		again, whole := Tree{Node: node}, Tree{}
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
				again.Skip(id, parent)
				whole.Skip(id, parent)
				continue
			case 7:
				parent = "missing"
			}
			raw := []byte("message " + strconv.Itoa(i))
			is := node(id, raw)
			is.Parent = parent
			again.Add(is, raw)
			whole.Add(is, nil)
		}
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
			require.True(t, slices.EqualFunc(want, got, func(a, b Node) bool {
				return a.ID == b.ID && a.Parent == b.Parent && a.Root == b.Root && a.Role == b.Role && string(a.Body) == string(b.Body)
			}))
		}
	})
}
