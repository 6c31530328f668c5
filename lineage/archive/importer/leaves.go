package importer

import "slices"

// leaves are the nodes without children, in order. Those that got children stay in the list until it is read, because
// removing them one by one would cost the length of the list each.
type leaves struct {
	nodes []int32
	grown bool // some of them have children
}

// add adds a node, which is after all others.
func (l *leaves) add(node int32) { l.nodes = append(l.nodes, node) }

// grew removes a node, which has got its first child.
func (l *leaves) grew(node int32) {
	if last := len(l.nodes) - 1; last >= 0 && l.nodes[last] == node {
		l.nodes = l.nodes[:last]
		return
	}
	l.grown = true
}

// all returns the leaves, given which nodes have children. It is valid until the next change.
func (l *leaves) all(hasKids func(node int32) bool) []int32 {
	if l.grown {
		l.nodes, l.grown = slices.DeleteFunc(l.nodes, hasKids), false
	}
	return l.nodes
}
