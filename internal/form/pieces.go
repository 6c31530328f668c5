package form

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// SplitMessage is a split message. It has at least one piece. The first is the main piece of the
// message: the first text, or the first piece of any kind if there is no text. The others are in
// the order of their holes. The slices may refer to the message's memory.
type SplitMessage struct {
	Form   []byte
	Extras [][]byte // the values that vary, in the order of their holes
	Pieces []Piece
}

// Piece is a part of a message: a text, a call, a result, a file or other data.
type Piece struct {
	Kind structure.PieceKind
	Name string // of the tool
	Body []byte
	JSON bool // the body is a JSON value, not the text of a string
}

// Limits. A message beyond them is not split.
const (
	MaxMessage = 16 << 20
	MaxForm    = content.InlineLimit
	MaxPieces  = structure.MostParts
)

// Holes and marks. The hole of a text is textHole plus the style of its string. A mark precedes
// the hole of the first piece unless that is the first hole of a piece. A toolMark at the start
// means that the first extra is the tool name of the first piece.
const (
	mark      = 0x01
	toolMark  = 0x02
	valueHole = 0x0e
	extraHole = 0x0f
	textHole  = 0x10
)

// inOrder moves the first piece to its index in the order of the message.
func inOrder[P any](pieces []P, place int) {
	if place < len(pieces) {
		first := pieces[0]
		copy(pieces, pieces[1:place+1])
		pieces[place] = first
	}
}

// firstFirst reverses inOrder.
func firstFirst[P any](pieces []P, place int) {
	if place < len(pieces) {
		first := pieces[place]
		copy(pieces[1:], pieces[:place])
		pieces[0] = first
	}
}

// nextHole returns the index of the first hole or mark, -1 if there is none.
func nextHole(form []byte) int {
	for i, c := range form {
		if isHole(c) {
			return i
		}
	}
	return -1
}

func isHole(c byte) bool { return c < ' ' && c != '\t' && c != '\n' && c != '\r' }

// Limits of the depth in which pieces are found, and of the names of tools.
const (
	maxDepth = 32
	maxName  = 128
)

// Sizes of values without a rule. A longer text counts as worth splitting for, even in a message
// with nothing else; a larger value is one piece, whatever it contains.
const (
	longText  = 256
	longValue = 1 << 10
)
