package form

import (
	"bytes"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// A search finds a message by its pieces: by texts unchanged, and by the strings and numbers of
// values. It ignores files and their addresses, keys, and long strings without white space, which
// are program data.

// Searched returns the searchable text of a message, one or more lines for each piece. Equal pieces
// count once.
func Searched(message []byte, role string) string {
	var texts []string
	EachSearched(message, role, func(_ *Piece, text string) { texts = append(texts, text) })
	return strings.Join(texts, "\n")
}

// EachSearched calls do with the pieces of a message that have searchable text, and their texts. Equal texts count once. A message
// that is not divided is one piece.
func EachSearched(message []byte, role string, do func(p *Piece, text string)) {
	divided, ok := Split(message, role)
	if !ok {
		do(&Piece{Body: message}, Plain.Text(message))
		return
	}
	inOrder(divided.Pieces, FirstAt(divided.Form))
	known := make(map[string]bool, len(divided.Pieces))
	for i := range divided.Pieces {
		p := &divided.Pieces[i]
		if text := ReadingOf(p.Kind, p.JSON).Text(p.Body); text != "" && !known[text] {
			known[text] = true
			do(p, text)
		}
	}
}

// SearchRole returns the role by which the message at usage head is found: its own, or tool if its format gives results of
// tools to the user.
func SearchRole(usages []structure.Usage, head int) string {
	role := usages[head].Role
	if role != "user" {
		return role
	}
	results := false
	for i := head; i < End(usages, head); i++ {
		switch usages[i].Piece {
		case structure.OutputPiece:
			results = true
		case structure.FilePiece, structure.DataPiece:
		default:
			return role
		}
	}
	if results {
		return "tool"
	}
	return role
}

// A Reading is how a search reads a piece.
type Reading byte

// Readings. Search indexes store their numbers.
const (
	Unread Reading = iota // a file
	Plain                 // the text
	Values                // the strings and numbers of a value
	Call                  // the input of a tool: a value in a text, or a text
	Data                  // a text that may be program data
)

// ReadingOf returns how a search reads a piece of a kind, whose body is JSON or text.
func ReadingOf(kind structure.PieceKind, json bool) Reading {
	switch {
	case kind == structure.FilePiece:
		return Unread
	case json:
		return Values
	case kind == structure.InputPiece:
		return Call
	case kind == structure.DataPiece:
		return Data
	}
	return Plain
}

// Text returns the searchable text of a body.
func (r Reading) Text(body []byte) string {
	switch {
	case r == Unread:
		return ""
	case r == Values, r == Call && isContainer(body) && rawjson.Check(body) == nil:
		return values(body)
	case r == Data && isLong(body):
		return ""
	}
	return strings.ToValidUTF8(string(body), "\ufffd")
}

func isContainer(body []byte) bool {
	at := rawjson.SkipSpace(body, 0)
	return at < len(body) && (body[at] == '{' || body[at] == '[')
}

// isLong reports whether a text is program data: long and without white space.
func isLong(text []byte) bool { return len(text) > maxID && isToken(text) }

// values returns the strings and numbers of a value, in order. Of invalid JSON it reads as much as
// possible.
func values(raw []byte) string {
	var b strings.Builder
	add := func(text []byte) {
		if len(text) == 0 || isLong(text) {
			return
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.Write(text)
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			end := rawjson.StringEnd(raw, i)
			next := rawjson.SkipSpace(raw, end)
			if next >= len(raw) || raw[next] != ':' { // not a key
				text, _ := rawjson.Unquote(raw[i:end])
				add(bytes.ToValidUTF8(text, []byte("\ufffd")))
			}
			i = end
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(raw) && strings.IndexByte("0123456789+-.eE", raw[end]) >= 0 {
				end++
			}
			add(raw[i:end])
			i = end
		default:
			i++
		}
	}
	return b.String()
}
