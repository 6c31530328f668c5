package importer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A list of nodes has each of them, and moves none after the first piece.
func TestNodeList(t *testing.T) {
	var l nodeList
	require.Zero(t, l.len())
	var moved []*loaded
	for i := range int32(3*nodesInPiece + 5) {
		if i%600 == 0 {
			l.grow(600)
		}
		require.Equal(t, i, l.add(loaded{mark: uint32(i)}))
		require.Equal(t, int(i)+1, l.len())
		if i >= nodesInPiece {
			moved = append(moved, l.at(i))
		}
	}
	for i := range int32(l.len()) {
		require.Equal(t, uint32(i), l.at(i).mark)
		if i >= nodesInPiece {
			require.Same(t, moved[i-nodesInPiece], l.at(i))
		}
	}
}
