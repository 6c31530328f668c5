// Package form splits a JSON message into its pieces and a form, which is the JSON around them,
// and joins them again, byte for byte.
//
// A form is the original JSON, with its white space and order, and a hole for each piece and for
// each value that differs between messages, such as an id or a time. A hole is a control
// character, which JSON cannot contain. So messages that differ only in their texts share a
// form, and equal texts are the same content in any JSON.
package form

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// ErrMismatch is returned for a form that does not match its pieces and extras.
var ErrMismatch = errors.New("form does not match its pieces")

// Split splits a message. The role determines the kind of its texts: those of a tool are output.
// It reports false for bytes that are not JSON and for a message beyond the limits: such a
// message is kept whole.
func Split(message []byte, role string) (SplitMessage, bool) {
	if len(message) > MaxMessage || rawjson.Check(message) != nil {
		return SplitMessage{}, false
	}
	at := rawjson.SkipSpace(message, 0)
	whole := value{raw: bytes.TrimRight(message[at:], " \t\r\n"), at: at, key: "content"} // the message is this value and space
	s := splitter{src: message, size: maxName}
	s.value(whole, PlainPiece(role), "")
	if s.worth == 0 && !s.exceeded && s.empty == nil {
		s = splitter{src: message}
		s.cut(whole, valueHole, Piece{Kind: structure.DataPiece, Body: whole.raw, JSON: true})
	}
	divided, ok := s.said()
	return divided, ok && divided.joinsTo(message, s.holes)
}

// joinsTo reports whether joining returns the message. holes are those of the pieces, in the order of the message. A text that
// was read from the same place of the message, in the first style, is not quoted again to compare it.
func (s *SplitMessage) joinsTo(message []byte, holes []holeAt) bool {
	bodies := make([][]byte, len(s.Pieces))
	for i := range bodies {
		bodies[i] = s.Pieces[i].Body
	}
	same := true
	take := func(b []byte) {
		if same = same && bytes.HasPrefix(message, b); same {
			message = message[len(b):]
		}
	}
	value := func(b []byte) {
		take(b)
		holes = holes[min(1, len(holes)):]
	}
	err := join(s.Form, s.Extras, bodies, take, value, func(quoting *style, text []byte) {
		n := 0
		if len(holes) > 0 {
			if h := &holes[0]; quoting == &styles[0] && h.common && sameMemory(h.text, text) && sameMemory(h.raw, message[:min(len(h.raw), len(message))]) {
				n = len(h.raw)
			}
			holes = holes[1:]
		}
		if n == 0 {
			n = quoting.begins(message, text)
		}
		if same = same && n > 0; same {
			message = message[n:]
		}
	})
	return err == nil && same && len(message) == 0
}

// sameMemory reports whether two slices are the same bytes in memory.
func sameMemory(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// Join joins a message. It allocates memory for all pieces first: callers must limit their
// sizes.
func Join(form []byte, extras, pieces [][]byte) ([]byte, error) {
	size := len(form)
	for _, list := range [2][][]byte{extras, pieces} {
		for _, b := range list {
			size += len(b) + 2
		}
	}
	out := make([]byte, 0, size+size/16)
	put := func(b []byte) { out = append(out, b...) }
	err := join(form, extras, pieces, put, put, func(s *style, text []byte) { out = s.quote(out, text) })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// join gives the parts of a message in order: bytes to put, pieces that are values, and pieces that are texts to quote.
func join(form []byte, extras, pieces [][]byte, put, value func([]byte), quote func(*style, []byte)) error {
	if len(form) > 0 && form[0] == toolMark && len(extras) > 0 {
		form, extras = form[1:], extras[1:]
	}
	var first []byte // the main piece, if the hole of another piece precedes its own
	marked := false
	if bytes.IndexByte(form, mark) >= 0 && len(pieces) > 0 {
		first, pieces, marked = pieces[0], pieces[1:], true
	}
	for len(form) > 0 {
		next := nextHole(form)
		if next < 0 {
			put(form)
			break
		}
		put(form[:next])
		hole := form[next]
		form = form[next+1:]
		if hole == extraHole {
			if len(extras) == 0 {
				return fmt.Errorf("%w: too few extras", ErrMismatch)
			}
			put(extras[0])
			extras = extras[1:]
			continue
		}
		if hole == mark && marked && len(form) > 0 {
			hole, form, marked = form[0], form[1:], false
			pieces = slices.Insert(slices.Clone(pieces), 0, first)
		}
		if len(pieces) == 0 {
			return fmt.Errorf("%w: too few pieces", ErrMismatch)
		}
		switch style := int(hole) - textHole; {
		case hole == valueHole:
			value(pieces[0])
		case style >= 0 && style < len(styles):
			quote(&styles[style], pieces[0])
		default:
			return fmt.Errorf("%w: unknown hole %#x", ErrMismatch, hole)
		}
		pieces = pieces[1:]
	}
	if len(extras) > 0 || len(pieces) > 0 || marked {
		return fmt.Errorf("%w: too many pieces or extras", ErrMismatch)
	}
	return nil
}

// KeepTool stores the tool of the first piece in the form. The limits of the extras reserve
// space for it.
func (s *SplitMessage) KeepTool() {
	s.Form = slices.Insert(s.Form, 0, byte(toolMark))
	s.Extras = slices.Insert(s.Extras, 0, []byte(s.Pieces[0].Name))
}

// FirstAt returns the index of the first piece in the order of the message.
func FirstAt(form []byte) int {
	marked := bytes.IndexByte(form, mark)
	if marked < 0 {
		return 0
	}
	n := 0
	for _, c := range form[:marked] {
		if c != extraHole && c != toolMark && isHole(c) {
			n++
		}
	}
	return n
}
