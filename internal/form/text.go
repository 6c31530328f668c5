package form

import (
	"slices"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/structure"
)

// Text returns the text of a message for people and models: its texts, a line for each call
// of a tool and each result, and a note in brackets for files. Data is left out, unless there
// is nothing else.
func Text(message []byte, role string) string {
	divided, ok := Split(message, role)
	if !ok {
		return strings.ToValidUTF8(string(message), "\ufffd")
	}
	pieces := make([]Stored, len(divided.Pieces))
	for i, p := range divided.Pieces {
		pieces[i] = Stored{Piece: p, Size: int64(len(p.Body))}
	}
	inOrder(pieces, FirstAt(divided.Form))
	return Tell(pieces)
}

// Tell is Text for pieces in the order of their message.
func Tell(pieces []Stored) string {
	var b strings.Builder
	data := !slices.ContainsFunc(pieces, func(p Stored) bool { return p.Kind != structure.DataPiece })
	for i := range pieces {
		if data || pieces[i].Kind != structure.DataPiece {
			pieces[i].tell(&b)
		}
	}
	return b.String()
}

func (p *Stored) tell(b *strings.Builder) {
	if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteByte('\n')
	}
	body := string(p.Body)
	switch {
	case p.Erased:
		body = Erased
	case p.Kind == structure.FilePiece && !isAddress(body), p.Body == nil && p.Size > 0:
		body = p.note()
	case p.JSON && rawjson.IsString(p.Body):
		body = rawjson.Str(p.Body)
	}
	switch p.Kind {
	case structure.ReasoningPiece:
		body = "(thinking) " + body
	case structure.InputPiece:
		body = "→ " + p.Name + "(" + body + ")"
	case structure.OutputPiece:
		body = "← " + body
	}
	b.WriteString(body)
}

// isAddress reports whether the text of a file is its address, not its content.
func isAddress(text string) bool {
	return len(text) <= 500 && strings.Contains(text, "://") && !strings.HasPrefix(text, "data:")
}
