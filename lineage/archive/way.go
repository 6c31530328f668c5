package archive

// leaveWay marks the nodes of a conversation that leave the way to its current message:
// they begin runs of their own, so that the way is one run whatever the order of the nodes.
// Of a part it is the way to the last node, unless the part has the current one.
func (c *Conversation) leaveWay() {
	forks := false
	for i := 1; i < len(c.Nodes) && !forks; i++ {
		n := &c.Nodes[i]
		forks = n.Parent != "" && n.Parent != c.Nodes[i-1].ID
	}
	if !forks {
		return
	}
	index := make(map[string]int, len(c.Nodes))
	last := -1
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if _, taken := index[n.ID]; !taken && n.ID != "" {
			index[n.ID] = i
		}
		if n.Aside == "" {
			last = i
		}
	}
	if i, there := index[c.Current]; there {
		last = i
	}
	next := make(map[int]int) // on the way, by the node before
	for at := last; at >= 0; {
		n := &c.Nodes[at]
		before, there := index[n.Parent]
		if _, again := next[before]; n.Root || !there || again {
			break
		}
		next[before], at = at, before
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if before, there := index[n.Parent]; there && !n.Root {
			onWay, ok := next[before]
			n.leavesWay = ok && onWay != i
		}
	}
}
