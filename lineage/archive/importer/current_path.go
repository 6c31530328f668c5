package importer

import "github.com/lineage-store/lineage/lineage/archive"

// offCurrentPath reports for each node whether it leaves the path to the current message, or returns nil if none does. Such
// nodes begin new runs, so that the path is a single run whatever the order of the nodes. In a part without the
// current node, the path leads to its last node.
func offCurrentPath(nodes []archive.Node, current string) []bool {
	forks := false
	for i := 1; i < len(nodes) && !forks; i++ {
		n := &nodes[i]
		forks = n.Parent != "" && n.Parent != nodes[i-1].ID
	}
	if !forks {
		return nil
	}
	index := make(map[string]int, len(nodes))
	last := -1
	for i := range nodes {
		n := &nodes[i]
		if _, taken := index[n.ID]; !taken && n.ID != "" {
			index[n.ID] = i
		}
		if n.Aside == "" {
			last = i
		}
	}
	if i, there := index[current]; there {
		last = i
	}
	next := make(map[int]int) // by node on the path, the next one
	for at := last; at >= 0; {
		n := &nodes[at]
		before, there := index[n.Parent]
		if _, again := next[before]; n.Root || !there || again {
			break
		}
		next[before], at = at, before
	}
	leaves := make([]bool, len(nodes))
	for i := range nodes {
		n := &nodes[i]
		if before, there := index[n.Parent]; there && !n.Root {
			onWay, ok := next[before]
			leaves[i] = ok && onWay != i
		}
	}
	return leaves
}
