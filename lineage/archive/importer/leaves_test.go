package importer

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The leaves are the nodes without children, whenever they are read.
func TestLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l leaves
		var kids []bool
		hasKids := func(node int32) bool { return kids[node] }
		for range rapid.IntRange(1, 50).Draw(t, "nodes") {
			if parent := rapid.IntRange(-1, len(kids)-1).Draw(t, "parent"); parent >= 0 && !kids[parent] {
				kids[parent] = true
				l.grew(int32(parent))
			}
			l.add(int32(len(kids)))
			kids = append(kids, false)
			if rapid.Bool().Draw(t, "read") {
				var want []int32
				for i := range kids {
					if !kids[i] {
						want = append(want, int32(i))
					}
				}
				require.Equal(t, want, slices.Clone(l.all(hasKids)))
			}
		}
	})
}

// In a session of very many roots, the cost of a node does not depend on their number: the list is gone through once.
func TestLeavesOfManyRoots(t *testing.T) {
	const roots = 1000
	var l leaves
	for i := range int32(roots) {
		l.add(i)
	}
	for i := range int32(roots) {
		l.grew(i)
		l.add(roots + i)
	}
	require.Len(t, l.nodes, 2*roots, "none was moved for another one")
	asked := 0
	require.Len(t, l.all(func(node int32) bool { asked++; return node < roots }), roots)
	require.Equal(t, 2*roots, asked)
	l.all(func(int32) bool { t.Error("nothing has changed"); return false })
}
