package importer

import "github.com/lineage-store/lineage/lineage/archive"

// leavePath reports for each node whether it leaves the path to the current message, or returns nil if none does. Such
// nodes begin new runs, so that the path is a single run whatever the order of the nodes. In a part without the
// current node, the path leads to its last node.
func leavePath(nodes []archive.Node, current string) []bool {
	if !anyFork(nodes) {
		return nil
	}
	index := make(map[string]int, len(nodes)) // of the first node with an id
	end := -1
	for i := range nodes {
		n := &nodes[i]
		if _, duplicate := index[n.ID]; !duplicate && n.ID != "" {
			index[n.ID] = i
		}
		if n.Aside == "" {
			end = i
		}
	}
	if i, known := index[current]; known {
		end = i
	}
	parentOf := func(i int) (parent int, known bool) {
		parent, known = index[nodes[i].Parent]
		return parent, known && !nodes[i].Root
	}
	next := make(map[int]int) // by node on the path, the next one
	for i := end; i >= 0; {
		parent, known := parentOf(i)
		if _, cycle := next[parent]; !known || cycle {
			break
		}
		next[parent], i = i, parent
	}
	leaves := make([]bool, len(nodes))
	for i := range nodes {
		if parent, known := parentOf(i); known {
			onPath, continues := next[parent]
			leaves[i] = continues && onPath != i
		}
	}
	return leaves
}

// anyFork reports whether a node does not follow the one before it.
func anyFork(nodes []archive.Node) bool {
	for i := 1; i < len(nodes); i++ {
		if n := &nodes[i]; n.Parent != "" && n.Parent != nodes[i-1].ID {
			return true
		}
	}
	return false
}
