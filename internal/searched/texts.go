package searched

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Limits for the indexed part of a text, in bytes and words.
const (
	maxText  = form.MaxMessage
	MaxWords = query.PieceWords - 1
)

// Summary is the kind for summaries, which are no usages.
const Summary structure.UsageKind = 0

// Name is the reading for names of documents and files, distinct from those of content.
const Name form.Reading = 0xff

// Readings are the readings of content.
var Readings = [...]form.Reading{form.Plain, form.Values, form.Call, form.Data}

// TextID identifies a text: the first 15 bytes of its content id, and the reading.
type TextID [16]byte

// TextOf returns the id of a reading of content.
func TextOf(id content.ID, r form.Reading) (t TextID) {
	copy(t[:15], id[:])
	t[15] = byte(r)
	return t
}

// Reading returns how the piece with the text is read.
func (t TextID) Reading() form.Reading { return form.Reading(t[15]) }

// Mention is a name or content in a step.
type Mention struct {
	// Head is the index of the first usage of the message, and Kind is the kind of that usage. Role is the role that form.SearchRole returns.
	Head int
	Kind structure.UsageKind
	Role string
	// Name is set for the name of a document or file. Otherwise Usage is the content.
	Name  string
	Usage *structure.Usage
}

// Mentions calls a function with what is indexed of a step.
func Mentions(s *structure.Span, do func(Mention) error) error {
	var m Mention
	for i := range s.Usages {
		u := &s.Usages[i]
		if u.Kind != structure.PartUsage {
			m.Head, m.Kind, m.Role = i, u.Kind, form.SearchRole(s.Usages, i)
		}
		if named := NameOf(u); named != "" {
			m.Name, m.Usage = named, nil
			if err := do(m); err != nil {
				return err
			}
		}
		m.Name, m.Usage = "", u
		if err := do(m); err != nil {
			return err
		}
	}
	return nil
}

// NameOf returns the name of a document or file.
func NameOf(u *structure.Usage) string {
	if u.Kind == structure.DocumentUsage {
		return u.Document
	}
	return u.Filename
}

// TextOfName returns the id of a name.
func TextOfName(name string) TextID { return TextOf(content.Sum([]byte(name)), Name) }

// ReadingOf returns how to read the content of a usage.
func ReadingOf(u *structure.Usage, b *structure.Block) form.Reading {
	if u.Kind != structure.MessageUsage && u.Kind != structure.PartUsage || u.Opaque {
		return form.Plain
	}
	mediaType := u.Type
	if mediaType == "" {
		mediaType = b.Type
	}
	return form.ReadingOf(u.Piece, mediaType == content.TypeJSON)
}

// ReadText returns the searched text of a block. It is empty for documents, files and messages that
// are not text.
func ReadText(ctx context.Context, from form.Blocks, kind structure.UsageKind, b *structure.Block, r form.Reading) (string, error) {
	body := b.Body
	if b.Tree.Size > 0 {
		var err error
		if body, err = io.ReadAll(io.LimitReader(content.OpenTree(ctx, b.Tree, from.Chunks), maxText)); err != nil {
			return "", err
		}
		for range utf8.UTFMax - 1 { // an incomplete character at the end
			if last, size := utf8.DecodeLastRune(body); last != utf8.RuneError || size != 1 {
				break
			}
			body = body[:len(body)-1]
		}
	}
	switch kind {
	case structure.DocumentUsage, structure.AssetUsage:
		if bytes.IndexByte(body, 0) >= 0 || !utf8.Valid(body) {
			return "", nil
		}
	case structure.MessageUsage:
		if r == form.Plain && !utf8.Valid(body) {
			return "", nil
		}
	}
	return r.Text(body), nil
}

// HasBody reports whether a block has its content or its tree. The body of an erased block is missing.
func HasBody(b *structure.Block) bool { return b != nil && (b.Body != nil || b.Tree.Size > 0) }

// BlockIn returns a block, or nil if it was erased or collected.
func BlockIn(ctx context.Context, from form.Blocks, id content.ID) (*structure.Block, error) {
	blocks, err := from.Blocks(ctx, []content.ID{id})
	if errors.Is(err, backend.ErrErased) || errors.Is(err, backend.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return blocks[0], nil
}

// EachTerm calls a function with the term of each indexed word of a text, "" for a word without one.
func EachTerm(known query.Terms, text string, do func(term string)) {
	words := 0
	query.EachWord(text, func(start, end int) {
		if words < MaxWords {
			words++
			do(known.Of(text[start:end]))
		}
	})
}
