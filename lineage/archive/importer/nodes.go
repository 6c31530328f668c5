package importer

import "slices"

// nodesInPiece is the number of nodes in each piece of a nodeList but the last.
const nodesInPiece = 1 << 12

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
type nodeList struct{ pieces [][]loaded }

func (l *nodeList) len() int {
	last := len(l.pieces) - 1
	if last < 0 {
		return 0
	}
	return last*nodesInPiece + len(l.pieces[last])
}

// at returns a node. It is valid until the next change.
func (l *nodeList) at(i int32) *loaded { return &l.pieces[i/nodesInPiece][i%nodesInPiece] }

// grow makes room for n more nodes in a list of one piece.
func (l *nodeList) grow(n int) {
	switch len(l.pieces) {
	case 0:
		l.pieces = append(l.pieces, make([]loaded, 0, min(n, nodesInPiece)))
	case 1:
		l.pieces[0] = slices.Grow(l.pieces[0], min(n, nodesInPiece-len(l.pieces[0])))
	}
}

// add adds a node and returns its index.
func (l *nodeList) add(n loaded) int32 {
	last := len(l.pieces) - 1
	if last < 0 || len(l.pieces[last]) == nodesInPiece {
		var piece []loaded
		if last >= 0 {
			piece = make([]loaded, 0, nodesInPiece)
		}
		l.pieces, last = append(l.pieces, piece), last+1
	}
	l.pieces[last] = append(l.pieces[last], n)
	return int32(l.len() - 1)
}
