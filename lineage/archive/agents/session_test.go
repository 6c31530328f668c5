package agents

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/archive"
)

// Each node comes once, after its parent. Of nodes that are their own ancestors one has none, and what only follows them has its own.
func TestOrdered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 1, 12, rapid.ID).Draw(t, "ids")
		nodes, parentOf := make([]archive.Node, len(ids)), make(map[string]string)
		for i, id := range ids {
			nodes[i].ID = fmt.Sprint("n", id)
			if of := rapid.IntRange(-1, 30).Draw(t, "parent"); of >= 0 {
				nodes[i].Parent = fmt.Sprint("n", of)
			}
			parentOf[nodes[i].ID] = nodes[i].Parent
		}
		circular := func(id string) bool {
			at := parentOf[id]
			for range nodes {
				if at == id {
					return true
				}
				at = parentOf[at]
			}
			return false
		}
		s := sessionReader{}
		got := s.ordered(slices.Clone(nodes))
		require.Len(t, got, len(nodes))
		seen := make(map[string]bool)
		for _, n := range got {
			require.False(t, seen[n.ID])
			if n.Parent != parentOf[n.ID] {
				require.True(t, circular(n.ID) && n.Parent == "", n.ID)
			}
			if _, here := parentOf[n.Parent]; here && n.Parent != n.ID {
				require.True(t, seen[n.Parent], "%s before %s", n.ID, n.Parent)
			}
			seen[n.ID] = true
		}
	})
}

// Many nodes that follow a circle take no longer than others.
func TestOrderedIsLinear(t *testing.T) {
	nodes := make([]archive.Node, 300_000)
	for i := range nodes {
		nodes[i] = archive.Node{ID: fmt.Sprint(i), Parent: "a"}
	}
	s := sessionReader{}
	got := s.ordered(append(nodes, archive.Node{ID: "a", Parent: "b"}, archive.Node{ID: "b", Parent: "a"}))
	require.Equal(t, []string{"a", "", "b", "a", "0", "a"}, []string{got[0].ID, got[0].Parent, got[len(got)-1].ID, got[len(got)-1].Parent, got[1].ID, got[1].Parent})
}
