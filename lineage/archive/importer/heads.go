package importer

import (
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// heads returns the nodes that contexts should point to: first the current node, then the ends of named branches,
// then leaves.
func (l *loader) heads(st *loading) []head {
	var heads []head
	at := make(map[int32]bool)
	if c := st.header.Continues; c != nil {
		if last := st.last[0]; last >= 0 && !st.nodes.at(last).adopted {
			heads, at[last] = append(heads, head{namedHead: namedHead{node: last, name: c.Branch}}), true
		}
		return st.withLeaves(heads, at, c.Branch)
	}
	current := int32(-1)
	if c := st.header.Current; c != "" {
		if i, ok := st.node(c); ok {
			current = i
		} else {
			l.repair(archive.Damaged(archive.Position{File: l.file, Inside: "conversation " + st.header.SourceID},
				archive.Malformed("its current message %q is missing; the last one is current", c)))
		}
	}
	if current < 0 {
		current = st.last[0]
		for _, n := range st.named {
			if n.name == lineage.MainBranch {
				current = n.node
			}
		}
	}
	if current >= 0 && st.nodes.at(current).aside == 0 {
		h := head{namedHead: namedHead{node: current}, current: true}
		for _, n := range st.named {
			if n.node == current {
				h.namedHead = n
			}
		}
		heads, at[current] = append(heads, h), true
	}
	for _, n := range st.named {
		if n.node != current {
			heads, at[n.node] = append(heads, head{namedHead: n}), true
		}
	}
	return st.withLeaves(heads, at, "")
}

// withLeaves adds the leaves that are at no head. Their contexts are children of a branch, by default the main one.
func (st *loading) withLeaves(heads []head, at map[int32]bool, branch string) []head {
	for _, i := range st.leaves.all(func(node int32) bool { return st.nodes.at(node).kids }) {
		if !at[i] {
			heads = append(heads, head{namedHead: namedHead{node: i, parent: branch}})
		}
	}
	return heads
}
