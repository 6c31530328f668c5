package importer

import "slices"

// nodesInPiece is the number of nodes in each piece of a nodeList but the last.
const nodesInPiece = 1 << 12

// loadedAtOnce is the number of messages that are prepared together.
const loadedAtOnce = 512

// loaded is the part of a node that is retained. It is small and has no pointers, because a conversation may have millions.
type loaded struct {
	seq     uint64 // of its span
	created int64  // in Unix milliseconds
	run     int32  // of its span, in loading.runs
	parent  int32
	aside   int32
	mark    uint32 // distinguishes the node from others in the metadata of threads
	visited uint32 // the last loading.round in which walk visited it
	kids    bool   // has children in this archive
	// foreign is set if the span belongs to another thread, kept if the store has the message in another serialization.
	foreign, kept bool
	adopted       bool // read from the store, not from this archive
}

// nodeList is a list of nodes in pieces, so that a long one is not copied when it grows.
type nodeList struct{ pieces []nodePiece }

// nodePiece is a part of a nodeList: its nodes, or a chain.
type nodePiece struct {
	nodes []loaded
	chain *chain
}

// chain is a full piece whose nodes follow one another in one run, as most messages of a long conversation do. It takes a
// quarter of the memory of its nodes, or a tenth if they have no times.
type chain struct {
	first, last loaded  // all but the first have the parent before them; only the last one may have no children
	created     []int64 // nil if all are those of the first
	marks       []uint32
	visited     []uint64 // by node a bit: it was visited in the round
	round       uint32
}

func (l *nodeList) len() int {
	last := len(l.pieces) - 1
	if last < 0 {
		return 0
	}
	return last*nodesInPiece + len(l.pieces[last].nodes) // the last piece is no chain
}

// at returns a copy of a node.
func (l *nodeList) at(i int32) loaded {
	p := &l.pieces[i/nodesInPiece]
	if p.chain != nil {
		return p.chain.at(i)
	}
	return p.nodes[i%nodesInPiece]
}

// change returns a node that is to be changed. It is valid until the next node is added.
func (l *nodeList) change(i int32) *loaded {
	p := &l.pieces[i/nodesInPiece]
	if c := p.chain; c != nil {
		p.nodes, p.chain = make([]loaded, nodesInPiece), nil
		for k := range p.nodes {
			p.nodes[k] = c.at(i - i%nodesInPiece + int32(k))
		}
	}
	return &p.nodes[i%nodesInPiece]
}

// visit records that walk visited a node in a round.
func (l *nodeList) visit(i int32, round uint32) {
	p := &l.pieces[i/nodesInPiece]
	if p.chain != nil {
		p.chain.visit(i%nodesInPiece, round)
		return
	}
	p.nodes[i%nodesInPiece].visited = round
}

// grow makes room for n more nodes in a list of one piece.
func (l *nodeList) grow(n int) {
	switch len(l.pieces) {
	case 0:
		l.pieces = append(l.pieces, nodePiece{nodes: make([]loaded, 0, min(n, nodesInPiece))})
	case 1:
		first := &l.pieces[0].nodes
		*first = slices.Grow(*first, min(n, nodesInPiece-len(*first)))
	}
}

// add adds a node and returns its index.
func (l *nodeList) add(n loaded) int32 {
	last := len(l.pieces) - 1
	if last < 0 || len(l.pieces[last].nodes) == nodesInPiece {
		var nodes []loaded
		if last >= 0 {
			nodes = make([]loaded, 0, nodesInPiece)
		}
		l.pieces, last = append(l.pieces, nodePiece{nodes: nodes}), last+1
	}
	nodes := &l.pieces[last].nodes
	*nodes = append(*nodes, n)
	// Nodes are placed after up to loadedAtOnce more were added.
	if before := last - 1; before >= 0 && len(*nodes) == loadedAtOnce+1 {
		if c := chainOf(l.pieces[before].nodes, int32(before*nodesInPiece)); c != nil {
			l.pieces[before] = nodePiece{chain: c}
		}
	}
	return int32(l.len() - 1)
}

// chainOf returns the chain of the nodes from an index on, or nil if they are none.
func chainOf(nodes []loaded, index int32) *chain {
	c := &chain{first: nodes[0], last: nodes[len(nodes)-1]}
	c.round = c.first.visited
	for k := range nodes {
		n := &nodes[k]
		want := c.plain(index + int32(k))
		want.created, want.mark, want.visited = n.created, n.mark, c.round
		if *n != want {
			return nil
		}
		if c.created == nil && n.created != c.first.created {
			c.created = make([]int64, len(nodes))
			for before := range k {
				c.created[before] = c.first.created
			}
		}
		if c.created != nil {
			c.created[k] = n.created
		}
	}
	c.marks = make([]uint32, len(nodes))
	for k := range nodes {
		c.marks[k] = nodes[k].mark
	}
	return c
}

// plain returns a node of a chain with what follows from its place.
func (c *chain) plain(i int32) loaded {
	n := c.first
	if k := i % nodesInPiece; k > 0 {
		n.seq, n.parent = n.seq+uint64(k), i-1
		if k == nodesInPiece-1 {
			n.kids = c.last.kids
		}
	}
	return n
}

func (c *chain) at(i int32) loaded {
	n, k := c.plain(i), i%nodesInPiece
	n.mark = c.marks[k]
	if c.created != nil {
		n.created = c.created[k]
	}
	if c.visited != nil {
		n.visited = 0
		if c.visited[k/64]>>(k%64)&1 != 0 {
			n.visited = c.round
		}
	}
	return n
}

// visit records that a node was visited. That it was in another round is forgotten.
func (c *chain) visit(k int32, round uint32) {
	if c.round != round {
		c.visited, c.round = make([]uint64, nodesInPiece/64), round
	}
	if c.visited == nil {
		return // all were
	}
	c.visited[k/64] |= 1 << (k % 64)
}
