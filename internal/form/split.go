package form

import (
	"slices"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// splitter splits a message from left to right.
type splitter struct {
	src      []byte
	copied   int // length of src that is in the form
	form     []byte
	pieces   []Piece
	holes    []holeAt // of the pieces
	extras   [][]byte
	worth    int // number of pieces that have a rule, or are long
	size     int // of the extras
	depth    int
	exceeded bool // a limit was exceeded
	empty    *emptyAt
}

// emptyAt is the first place of a message with an empty text.
type emptyAt struct {
	at   int // in the form
	kind structure.PieceKind
}

// holeAt is the place of a piece's hole in the form, and the original JSON of the piece: nil for
// the empty piece of a message without content.
type holeAt struct {
	at     int
	raw    []byte
	common bool   // the JSON is a string in the first style
	text   []byte // which says this
}

// value is a value of the message.
type value struct {
	raw []byte
	at  int    // in the message
	key string // of its member, or of the member whose list it is in
	// aside is set inside a value without a rule.
	aside bool
}

// value splits a value. Texts in it have the given kind and belong to a tool.
func (s *splitter) value(v value, kind structure.PieceKind, tool string) {
	if s.exceeded || len(v.raw) == 0 {
		return
	}
	if !v.aside && mayBeEmpty[v.key] && isEmpty(v.raw) {
		s.emptyText(v, kind)
		return
	}
	switch v.raw[0] {
	case '{', '[':
		v.aside = v.aside || !nestedKeys[v.key]
		if s.depth == maxDepth || v.aside && hasContent(v.key, v.raw, s.depth) {
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
		case textKeys[v.key] && !v.aside:
			s.text(v, kind, tool)
		case kindKeys[v.key] && isPlain(v.raw) && (v.key != "name" || tool != ""):
		case v.key == "name" && !v.aside && len(v.raw) <= maxName, IsQuiet(v.key, v.raw):
			s.extra(v) // a name is that of a tool or a speaker
		default:
			s.unknown(v)
		}
	case 't', 'f', 'n':
	default:
		s.extra(v)
	}
}

// unknown makes a piece of a value without a rule.
func (s *splitter) unknown(v value) {
	worth := s.worth
	s.whole(v, structure.DataPiece, "")
	if len(v.raw) < longText || v.raw[0] != '"' && len(v.raw) < longValue {
		s.worth = worth
	}
}

// object splits an object.
func (s *splitter) object(v value, kind structure.PieceKind, tool string) {
	o := readObject(v.raw)
	if kind = o.textKind(kind); v.key == "thoughts" {
		kind = structure.ReasoningPiece
	}
	if o.tool != "" && len(o.tool) <= maxName {
		tool = o.tool
	}
	for m := range rawjson.Members(v.raw) {
		member := value{m.Value, v.at + m.At, m.Key, v.aside}
		if v.aside || len(m.Value) == 0 || !s.member(member, &o, kind, tool) {
			s.value(member, kind, tool)
		}
	}
}

// member splits a member of an object if there is a rule for it.
func (s *splitter) member(v value, owner *objectRule, kind structure.PieceKind, tool string) bool {
	simple := v.raw[0] == '"'
	switch v.key {
	case "text":
		if simple && owner.copies {
			s.text(v, structure.DataPiece, "")
			return true
		}
	case "message": // of Grok
		switch {
		case !owner.sent:
		case isEmpty(v.raw):
			s.emptyText(v, kind)
			return true
		case simple:
			s.text(v, kind, tool)
			return true
		}
	case "attachments":
		s.value(v, structure.DataPiece, "")
		return true
	case "thinking", "reasoning", "reasoning_content", "reasoning_text", "reasoningText", "think", "thinking_trace":
		if simple {
			s.text(v, structure.ReasoningPiece, "")
			return true
		}
	case "arguments", "input", "args":
		if tool != "" || owner.calls() {
			s.whole(v, structure.InputPiece, tool)
			return true
		}
	case "subject", "description": // a thought of Gemini
		if simple && kind == structure.ReasoningPiece {
			s.text(v, kind, "")
			return true
		}
	case "summary", "command":
		if simple && owner.tells(v.key) {
			s.text(v, structure.TextPiece, "")
			return true
		}
	case "output", "result", "response", "errorText", "error":
		return s.result(v, owner, tool)
	case "data":
		return s.data(v, owner, kind, tool)
	case "value":
		if owner.kind == "json" && kind == structure.OutputPiece {
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

// result splits a member that may be the result of a tool, if it is one or a text of the object.
func (s *splitter) result(v value, owner *objectRule, tool string) bool {
	switch {
	case v.raw[0] == '"' && owner.tells(v.key):
		s.text(v, structure.TextPiece, "")
	case !owner.returns && tool == "" && !owner.calls():
		return false
	case owner.returns && v.key == "result" && v.raw[0] == '{', !owner.returns && hasParts(v.raw):
		v.key = "content"
		s.value(v, structure.OutputPiece, tool)
	default:
		s.whole(v, structure.OutputPiece, tool)
	}
	return true
}

// data splits the member data of an object whose kind says what is in it.
func (s *splitter) data(v value, owner *objectRule, kind structure.PieceKind, tool string) bool {
	simple := v.raw[0] == '"'
	switch {
	case owner.isData:
		s.whole(v, structure.DataPiece, "")
	case v.raw[0] == '{' && owner.wraps():
		v.key = "content"
		s.value(v, kind, tool)
	case simple && owner.kind == "redacted_thinking":
		s.text(v, structure.DataPiece, "")
	case simple && owner.isFile:
		s.text(v, structure.FilePiece, "")
	default:
		return false
	}
	return true
}

// text makes a piece of a string. An empty one stays in the form. One that is not valid Unicode
// stays quoted.
func (s *splitter) text(v value, kind structure.PieceKind, tool string) {
	if len(v.raw) <= 2 {
		return
	}
	text, exact, common := rawjson.UnquoteAs(v.raw)
	if !exact || !utf8.Valid(text) {
		s.cut(v, valueHole, Piece{Kind: kind, Name: tool, Body: v.raw, JSON: true})
		return
	}
	if s.cut(v, textHole, Piece{Kind: kind, Name: tool, Body: text}); !s.exceeded {
		h := &s.holes[len(s.holes)-1]
		h.text, h.common = text, common
	}
}

// emptyText remembers the place of an empty value. The value stays in the form.
func (s *splitter) emptyText(v value, kind structure.PieceKind) {
	if s.empty == nil {
		s.form = append(s.form, s.src[s.copied:v.at]...)
		s.copied = v.at
		s.empty = &emptyAt{len(s.form), kind}
	}
}

// whole makes a piece of a value in its JSON. Literals and numbers are not pieces.
func (s *splitter) whole(v value, kind structure.PieceKind, tool string) {
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
	if len(s.pieces) == MaxPieces {
		s.exceeded = true
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

// extra stores a value that varies. At the limit of extras it is a piece. One extra is reserved
// for the name of a tool.
func (s *splitter) extra(v value) {
	if len(s.extras) == structure.MostExtras-1 || s.size+len(v.raw) > structure.MostExtraBytes {
		s.cut(v, valueHole, Piece{Kind: structure.DataPiece, Body: v.raw, JSON: true})
		return
	}
	s.size += len(v.raw)
	s.extras = append(s.extras, v.raw)
	s.put(v, extraHole)
}

// put replaces a value by a hole.
func (s *splitter) put(v value, hole byte) {
	s.form = append(append(s.form, s.src[s.copied:v.at]...), hole)
	s.copied = v.at + len(v.raw)
}

// said returns the split message, and whether it is within the limits.
func (s *splitter) said() (SplitMessage, bool) {
	s.form = append(s.form, s.src[s.copied:]...)
	if s.exceeded || len(s.form) >= MaxForm-1 {
		return SplitMessage{}, false
	}
	s.addEmpty()
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
	return SplitMessage{Form: s.form, Extras: s.extras, Pieces: s.pieces}, true
}

// addEmpty adds an empty piece for an empty text, if there is one and the message has no other
// content. Its hole precedes the value, which stays in the form.
func (s *splitter) addEmpty() {
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

// chooseStyles stores the styles of texts in their holes: one style for all if possible, so that
// there are few forms. A text in an unknown style stays quoted.
func (s *splitter) chooseStyles() {
	written := func(i, style int) bool {
		if s.pieces[i].JSON || s.holes[i].raw == nil {
			return true
		}
		if style == 0 {
			return s.holes[i].common
		}
		return styles[style].begins(s.holes[i].raw, s.pieces[i].Body) == len(s.holes[i].raw)
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
