// Package form takes a message of JSON apart into the pieces that were said and a form, which
// is the JSON around them, and puts it together again, byte for byte.
//
// A form is the JSON as it was given, white space and order included, with a hole for each
// piece and for each value that varies from message to message, such as an id or a time. A
// hole is a control byte, which no JSON contains. So messages that differ in what they say
// have the same form, and texts are the same content in whatever JSON they stand.
package form

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// Said is a message taken apart. There is at least one piece. The first is the one that stands
// for the message: the first text, or the first piece of any kind where there is no text. The
// others are in the order of their holes. Their memory may be the message's.
type Said struct {
	Form   []byte
	Extras [][]byte // the values that vary, in the order of their holes
	Pieces []Piece
}

// Piece is a thing that a message says.
type Piece struct {
	Kind structure.Piece
	Name string // of the tool that it belongs to
	Body []byte
	JSON bool // the body is a value, not the text of a string
}

// Bounds of what is taken apart. A message beyond them is kept whole.
const (
	MostMessage = 16 << 20
	MostForm    = content.InlineLimit
	MostPieces  = structure.MostParts
)

// Holes and marks. The hole of a text is textHole plus the style that its string is written in.
// A mark stands before the hole of the first piece where that is not the first hole of a piece.
// A toolMark at the beginning says that the first extra is the name of the first piece's tool.
const (
	mark      = 0x01
	toolMark  = 0x02
	valueHole = 0x0e
	extraHole = 0x0f
	textHole  = 0x10
)

// ErrMismatch is returned for a form that does not go with its pieces and extras.
var ErrMismatch = errors.New("form does not go with its pieces")

// Split takes a message apart. The role says what its texts are: those of a tool are output.
// It reports false for bytes that are no JSON and for a message beyond the bounds: such a
// message is kept whole.
func Split(message []byte, role string) (Said, bool) {
	if len(message) > MostMessage || rawjson.Check(message) != nil {
		return Said{}, false
	}
	at := rawjson.SkipSpace(message, 0)
	whole := value{raw: message[at:rawjson.ValueEnd(message, at)], at: at, key: "content"}
	s := splitter{src: message, size: mostName}
	s.value(whole, PlainPiece(role), "")
	if s.worth == 0 && !s.over && s.empty == nil {
		s = splitter{src: message}
		s.cut(whole, valueHole, Piece{Kind: structure.DataPiece, Body: whole.raw, JSON: true})
	}
	said, ok := s.said()
	return said, ok && said.gives(message)
}

// gives reports whether the message comes back.
func (s *Said) gives(message []byte) bool {
	bodies := make([][]byte, len(s.Pieces))
	for i := range bodies {
		bodies[i] = s.Pieces[i].Body
	}
	again, err := Join(s.Form, s.Extras, bodies)
	return err == nil && bytes.Equal(again, message)
}

// PlainPiece returns what a text is that someone of a role says.
func PlainPiece(role string) structure.Piece {
	if role == "tool" || role == "function" {
		return structure.OutputPiece
	}
	return structure.TextPiece
}

// Join puts a message together. Memory for it is taken before its form is looked at: callers
// bound the sizes.
func Join(form []byte, extras, pieces [][]byte) ([]byte, error) {
	size := len(form)
	for _, list := range [2][][]byte{extras, pieces} {
		for _, b := range list {
			size += len(b) + 2
		}
	}
	out := make([]byte, 0, size+size/16)
	if len(form) > 0 && form[0] == toolMark && len(extras) > 0 {
		form, extras = form[1:], extras[1:]
	}
	var first []byte // where another piece has its hole before the first piece
	marked := false
	if bytes.IndexByte(form, mark) >= 0 && len(pieces) > 0 {
		first, pieces, marked = pieces[0], pieces[1:], true
	}
	for len(form) > 0 {
		next := bytes.IndexFunc(form, isHole)
		if next < 0 {
			out = append(out, form...)
			break
		}
		out = append(out, form[:next]...)
		hole := form[next]
		form = form[next+1:]
		if hole == extraHole {
			if len(extras) == 0 {
				return nil, fmt.Errorf("%w: there are more extras", ErrMismatch)
			}
			out, extras = append(out, extras[0]...), extras[1:]
			continue
		}
		if hole == mark && marked && len(form) > 0 {
			hole, form, marked = form[0], form[1:], false
			pieces = slices.Insert(slices.Clone(pieces), 0, first)
		}
		if len(pieces) == 0 {
			return nil, fmt.Errorf("%w: there are more pieces", ErrMismatch)
		}
		switch style := int(hole) - textHole; {
		case hole == valueHole:
			out = append(out, pieces[0]...)
		case style >= 0 && style < len(styles):
			out = styles[style].quote(out, pieces[0])
		default:
			return nil, fmt.Errorf("%w: unknown hole %#x", ErrMismatch, hole)
		}
		pieces = pieces[1:]
	}
	if len(extras) > 0 || len(pieces) > 0 || marked {
		return nil, fmt.Errorf("%w: there are fewer", ErrMismatch)
	}
	return out, nil
}

// KeepTool notes the tool of the first piece in the form. There is room for it among the
// extras.
func (s *Said) KeepTool() {
	s.Form = slices.Insert(s.Form, 0, byte(toolMark))
	s.Extras = slices.Insert(s.Extras, 0, []byte(s.Pieces[0].Name))
}

// FirstAt returns the place of the first piece in the order in which the message has its pieces.
func FirstAt(form []byte) int {
	marked := bytes.IndexByte(form, mark)
	if marked < 0 {
		return 0
	}
	n := 0
	for _, c := range form[:marked] {
		if c != extraHole && c != toolMark && isHole(rune(c)) {
			n++
		}
	}
	return n
}

// inOrder puts the first of the pieces in its place among the others, in the order of a message.
func inOrder[P any](pieces []P, place int) {
	if place < len(pieces) {
		first := pieces[0]
		copy(pieces, pieces[1:place+1])
		pieces[place] = first
	}
}

// firstFirst takes inOrder back.
func firstFirst[P any](pieces []P, place int) {
	if place < len(pieces) {
		first := pieces[place]
		copy(pieces[1:], pieces[:place])
		pieces[0] = first
	}
}

func isHole(r rune) bool { return r < ' ' && r != '\t' && r != '\n' && r != '\r' }
