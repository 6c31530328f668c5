package importer

import "slices"

// nodesInPiece is the number of nodes in each piece of a nodeList but the last.
const nodesInPiece = 1 << 12

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
