package form

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// Sizes from which values that no rule knows are kept once: a text makes a piece worth looking
// for in a message that says nothing else, a value is a piece whatever is in it.
const (
	longText  = 256
	longValue = 1 << 10
)

// Bounds of how deeply pieces are looked for and of the names of tools.
const (
	mostDepth = 32
	mostName  = 128
)

// splitter takes a message apart from left to right.
type splitter struct {
	src    []byte
	copied int // how far src is in the form
	form   []byte
	pieces []Piece
	holes  []holeAt // of the pieces
	extras [][]byte
	worth  int // how many pieces are of values that a rule knows, or are long
	size   int // of the extras
	depth  int
	over   bool // a bound was passed
	empty  *emptyAt
}

// emptyAt is the first place of a message where a text could be and is not.
type emptyAt struct {
	at   int // in the form
	kind structure.Piece
}

// holeAt is where a piece has its hole in the form, and how the message writes the piece: nil for
// the piece of a message that says nothing.
type holeAt struct {
	at  int
	raw []byte
}

// value is a value of the message.
type value struct {
	raw []byte
	at  int    // in the message
	key string // of the member that it is, or of the list that it is in
	// aside says that it is inside a value that no rule knows.
	aside bool
}

// value takes a value apart. Texts in it are of the given kind, and belong to a tool.
func (s *splitter) value(v value, kind structure.Piece, tool string) {
	if s.over || len(v.raw) == 0 {
		return
	}
	if !v.aside && mayBeEmpty[v.key] && isEmpty(v.raw) {
		s.nothing(v, kind)
		return
	}
	switch v.raw[0] {
	case '{', '[':
		v.aside = v.aside || !leadsOn[v.key]
		if s.depth == mostDepth || v.aside && saysAside(v.key, v.raw, s.depth) {
			s.unknown(v)
			return
		}
		s.depth++
		if v.raw[0] == '{' {
			s.object(v, kind, tool)
		} else {
			for at, e := range rawjson.ElementsAt(v.raw) {
				s.value(value{e, v.at + at, v.key, v.aside}, kind, tool)
			}
		}
		s.depth--
	case '"':
		switch {
		case says[v.key] && !v.aside:
			s.text(v, kind, tool)
		case namesKind[v.key] && isPlain(v.raw) && (v.key != "name" || tool != ""):
		case v.key == "name" && !v.aside && len(v.raw) <= mostName, isQuiet(v.key, v.raw):
			s.extra(v) // a name is that of a tool or a speaker
		default:
			s.unknown(v)
		}
	case 't', 'f', 'n':
	default:
		s.extra(v)
	}
}

// unknown makes a piece of a value that no rule knows.
func (s *splitter) unknown(v value) {
	worth := s.worth
	s.whole(v, structure.DataPiece, "")
	if len(v.raw) < longText || v.raw[0] != '"' && len(v.raw) < longValue {
		s.worth = worth
	}
}

// object takes an object apart.
func (s *splitter) object(v value, kind structure.Piece, tool string) {
	is := look(v.raw)
	kind = is.says(kind)
	if is.tool != "" && len(is.tool) <= mostName {
		tool = is.tool
	}
	for m := range rawjson.Members(v.raw) {
		member := value{m.Value, v.at + m.At, m.Key, v.aside}
		if v.aside || len(m.Value) == 0 || !s.member(member, &is, kind, tool) {
			s.value(member, kind, tool)
		}
	}
}

// member takes a member of an object apart if it is one that a rule knows.
func (s *splitter) member(v value, of *object, kind structure.Piece, tool string) bool {
	simple := v.raw[0] == '"'
	switch v.key {
	case "text":
		if simple && of.copies {
			s.text(v, structure.DataPiece, "")
			return true
		}
	case "attachments":
		s.value(v, structure.DataPiece, "")
		return true
	case "thinking", "reasoning", "reasoning_content", "reasoning_text", "think":
		if simple {
			s.text(v, structure.ReasoningPiece, "")
			return true
		}
	case "arguments", "input", "args":
		if tool != "" || of.calls() {
			s.whole(v, structure.InputPiece, tool)
			return true
		}
	case "output", "result", "response", "errorText", "error":
		switch {
		case tool == "" && !of.calls():
		case hasParts(v.raw):
			v.key = "content"
			s.value(v, structure.OutputPiece, tool)
			return true
		default:
			s.whole(v, structure.OutputPiece, tool)
			return true
		}
	case "data":
		switch {
		case of.isData:
			s.whole(v, structure.DataPiece, "")
			return true
		case simple && of.kind == "redacted_thinking":
			s.text(v, structure.DataPiece, "")
			return true
		case simple && of.isFile:
			s.text(v, structure.FilePiece, "")
			return true
		}
	case "value":
		if of.kind == "json" && kind == structure.OutputPiece {
			s.whole(v, kind, tool)
			return true
		}
	case "url", "image_url", "file_url", "file_data", "fileUri", "file_uri", "file_id", "asset_pointer":
		if simple {
			s.text(v, structure.FilePiece, "")
			return true
		}
	case "encrypted_content":
		if simple {
			s.text(v, structure.DataPiece, "")
			return true
		}
	case "signature", "thoughtSignature", "thought_signature":
		if simple {
			s.extra(v)
			return true
		}
	}
	return false
}

// text makes a piece of a string. An empty one says nothing and stays in the form. One whose
// text is not Unicode is a piece as it is written.
func (s *splitter) text(v value, kind structure.Piece, tool string) {
	if len(v.raw) <= 2 {
		return
	}
	text, exact := rawjson.Unquote(v.raw)
	if !exact || !utf8.Valid(text) {
		s.cut(v, valueHole, Piece{Kind: kind, Name: tool, Body: v.raw, JSON: true})
		return
	}
	s.cut(v, textHole, Piece{Kind: kind, Name: tool, Body: text})
}

// nothing notes that a value says nothing. The value stays in the form.
func (s *splitter) nothing(v value, kind structure.Piece) {
	if s.empty == nil {
		s.form = append(s.form, s.src[s.copied:v.at]...)
		s.copied = v.at
		s.empty = &emptyAt{len(s.form), kind}
	}
}

// whole makes a piece of a value as it is written. It makes none of literals and numbers.
func (s *splitter) whole(v value, kind structure.Piece, tool string) {
	switch v.raw[0] {
	case '{', '[':
		s.cut(v, valueHole, Piece{Kind: kind, Name: tool, Body: v.raw, JSON: true})
	case '"':
		s.text(v, kind, tool)
	case 't', 'f', 'n':
	default:
		s.extra(v)
	}
}

func (s *splitter) cut(v value, hole byte, p Piece) {
	if len(s.pieces) == MostPieces {
		s.over = true
		return
	}
	if p.Kind != structure.InputPiece && p.Kind != structure.OutputPiece {
		p.Name = ""
	}
	s.put(v, hole)
	s.worth++
	s.pieces = append(s.pieces, p)
	s.holes = append(s.holes, holeAt{at: len(s.form) - 1, raw: v.raw})
}

// extra keeps a value that varies. When there is no more room for extras, it is a piece. Room is
// left for the name of a tool.
func (s *splitter) extra(v value) {
	if len(s.extras) == structure.MostExtras-1 || s.size+len(v.raw) > structure.MostExtraBytes {
		s.cut(v, valueHole, Piece{Kind: structure.DataPiece, Body: v.raw, JSON: true})
		return
	}
	s.size += len(v.raw)
	s.extras = append(s.extras, v.raw)
	s.put(v, extraHole)
}

// put puts a hole in the place of a value.
func (s *splitter) put(v value, hole byte) {
	s.form = append(append(s.form, s.src[s.copied:v.at]...), hole)
	s.copied = v.at + len(v.raw)
}

// said returns what was found, and whether it is within the bounds.
func (s *splitter) said() (Said, bool) {
	s.form = append(s.form, s.src[s.copied:]...)
	if s.over || len(s.form) >= MostForm-1 {
		return Said{}, false
	}
	s.sayNothing()
	s.chooseStyles()
	first := 0
	for i := range s.pieces {
		if s.pieces[i].Kind == structure.TextPiece {
			first = i
			break
		}
	}
	if first > 0 {
		firstFirst(s.pieces, first)
		at := s.holes[first].at
		s.form = append(s.form[:at+1], s.form[at:]...)
		s.form[at] = mark
	}
	return Said{Form: s.form, Extras: s.extras, Pieces: s.pieces}, true
}

// sayNothing makes an empty piece of the place where a text could be, if there is one and the
// message says nothing else. Its hole stands before the value, which stays in the form.
func (s *splitter) sayNothing() {
	if s.empty == nil || slices.ContainsFunc(s.pieces, func(p Piece) bool { return p.Kind != structure.DataPiece }) {
		return
	}
	place := 0
	for i := range s.holes {
		if h := &s.holes[i]; h.at < s.empty.at {
			place++
		} else {
			h.at++
		}
	}
	s.form = slices.Insert(s.form, s.empty.at, valueHole)
	s.pieces = slices.Insert(s.pieces, place, Piece{Kind: s.empty.kind, Body: []byte{}})
	s.holes = slices.Insert(s.holes, place, holeAt{at: s.empty.at})
}

// chooseStyles says in the holes of texts how they are written: all in one style if there is
// one, so that there are few forms. A text that is written in no style is a piece as it is
// written.
func (s *splitter) chooseStyles() {
	var scratch []byte
	written := func(i, style int) bool {
		if s.pieces[i].JSON || s.holes[i].raw == nil {
			return true
		}
		scratch = styles[style].quote(scratch[:0], s.pieces[i].Body)
		return bytes.Equal(scratch, s.holes[i].raw)
	}
	for style := range styles {
		n := 0
		for n < len(s.pieces) && written(n, style) {
			n++
		}
		if n == len(s.pieces) {
			for i := range s.pieces {
				if !s.pieces[i].JSON && s.holes[i].raw != nil {
					s.form[s.holes[i].at] = textHole + byte(style)
				}
			}
			return
		}
	}
	for i := range s.pieces {
		style := 0
		for style < len(styles) && !written(i, style) {
			style++
		}
		switch p := &s.pieces[i]; {
		case p.JSON, s.holes[i].raw == nil:
		case style == len(styles):
			p.Body, p.JSON = s.holes[i].raw, true
			s.form[s.holes[i].at] = valueHole
		default:
			s.form[s.holes[i].at] = textHole + byte(style)
		}
	}
}
