package form

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Blocks is the part of an engine or a snapshot that is needed to read messages.
type Blocks interface {
	Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error)
	Chunks(ctx context.Context, keys []content.Key) ([][]byte, error)
}

// Stored is a piece in a store. Body is nil if the piece is too large to be returned with a
// history, or was erased.
type Stored struct {
	Piece
	Content content.ID
	Type    string
	Size    int64
	Erased  bool
}

// Message is a stored message: its pieces, in their original order, and its form.
type Message struct {
	Pieces []Stored
	formed bool   // has a form; otherwise the message is its only piece
	form   []byte // nil if it was erased
	extras [][]byte
	first  int // index of the main piece
}

// Whole returns the message that is one piece of content.
func Whole(id content.ID, size int64) *Message {
	return &Message{Pieces: []Stored{{Content: id, Size: size}}}
}

// IsPlain reports whether usage i of a span is a message of one piece without a form.
func IsPlain(usages []structure.Usage, i int) bool {
	return usages[i].Form.IsZero() && (i+1 == len(usages) || usages[i+1].Kind != structure.PartUsage)
}

// End returns the index after the message that starts at usage i.
func End(usages []structure.Usage, i int) int {
	for i++; i < len(usages) && usages[i].Kind == structure.PartUsage; i++ {
	}
	return i
}

// Reader reads the messages of one state of a store, and caches forms.
type Reader struct {
	from  Blocks
	forms map[content.ID][]byte // nil for an erased one
	size  int                   // of the forms
}

// maxForms is the size of a reader's cache in bytes.
const maxForms = 4 << 20

// NewReader returns a reader.
func NewReader(from Blocks) *Reader { return &Reader{from: from, forms: make(map[content.ID][]byte)} }

// Message returns the message that starts at usage i of a step with bodies. Of the step's memory it
// keeps only bodies.
func (r *Reader) Message(ctx context.Context, step *backend.Step, i int) (*Message, error) {
	return r.message(ctx, step.Span.Usages, step.Blocks, i)
}

func (r *Reader) message(ctx context.Context, usages []structure.Usage, blocks []*structure.Block, i int) (*Message, error) {
	end := End(usages, i)
	head := &usages[i]
	m := &Message{Pieces: make([]Stored, 0, end-i), formed: !head.Form.IsZero()}
	for _, extra := range head.Extras {
		m.extras = append(m.extras, bytes.Clone(extra))
	}
	for k := i; k < end; k++ {
		u, b := &usages[k], blocks[k]
		p := Stored{Content: u.Content, Type: u.Type, Size: b.Size, Erased: b.Body == nil && b.Tree.Size == 0}
		p.Kind, p.Name, p.Body = u.Piece, u.Name, b.Body
		if k == i {
			if p.Name = ""; u.Piece == structure.OutputPiece && PlainPiece(u.Role) == u.Piece {
				p.Name = u.Name
			}
		}
		if p.Type == "" {
			p.Type = b.Type
		}
		p.JSON = p.Type == content.TypeJSON
		m.Pieces = append(m.Pieces, p)
	}
	if !m.formed {
		return m, nil
	}
	f, err := r.form(ctx, head.Form)
	if err != nil {
		return nil, err
	}
	m.form = f
	if len(f) > 0 && f[0] == toolMark && len(m.extras) > 0 {
		m.Pieces[0].Name = string(m.extras[0])
	}
	m.first = FirstAt(f)
	inOrder(m.Pieces, m.first)
	return m, nil
}

// form returns a form, or nil if it was erased.
func (r *Reader) form(ctx context.Context, id content.ID) ([]byte, error) {
	f, known := r.forms[id]
	if known {
		return f, nil
	}
	f, err := r.Body(ctx, &Stored{Content: id})
	if errors.Is(err, backend.ErrErased) || errors.Is(err, backend.ErrNotFound) { // since the history was read
		f, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.Know(id, f)
	return f, nil
}

// Know adds a copy of a form, or of content with metadata, that the caller has. A body may share its memory with much else.
func (r *Reader) Know(id content.ID, body []byte) {
	if _, known := r.forms[id]; known {
		return
	}
	if r.size += len(body); r.size > maxForms {
		clear(r.forms)
		r.size = len(body)
	}
	r.forms[id] = bytes.Clone(body)
}

// Ahead reads at once forms and metadata of steps. Where some are gone or large, they are read when they are asked for.
func (r *Reader) Ahead(ctx context.Context, steps []*backend.Step) error {
	var ids []content.ID
	seen := make(map[content.ID]bool)
	for _, step := range steps {
		for i := range step.Span.Usages {
			u := &step.Span.Usages[i]
			for _, id := range []content.ID{u.Form, u.MetadataContent} {
				if _, known := r.forms[id]; known || id.IsZero() || seen[id] {
					continue
				}
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	blocks, err := r.from.Blocks(ctx, ids)
	switch {
	case errors.Is(err, backend.ErrErased), errors.Is(err, backend.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	for i, b := range blocks {
		if b.Body != nil {
			r.Know(ids[i], b.Body)
		}
	}
	return nil
}

// Metadata returns the metadata of a usage, or nil if there is none or it was erased. The result
// may share the usage's memory.
func (r *Reader) Metadata(ctx context.Context, u *structure.Usage) ([]byte, error) {
	if u.MetadataContent.IsZero() {
		return u.Metadata, nil
	}
	return r.form(ctx, u.MetadataContent)
}

// Lost reports whether the message's form was erased.
func (m *Message) Lost() bool { return m.formed && m.form == nil }

// Size returns the total size of the pieces.
func (m *Message) Size() (n int64) {
	for i := range m.Pieces {
		n += m.Pieces[i].Size
	}
	return n
}

// Inline returns the original message if all its bodies were read with the history and it is at
// most content.InlineLimit; otherwise nil. A damaged form gives nil as well.
func (m *Message) Inline() []byte {
	if !m.formed {
		return m.Pieces[0].Body
	}
	f := m.form
	size := len(f)
	bodies := make([][]byte, len(m.Pieces))
	for i := range m.Pieces {
		if m.Pieces[i].Body == nil {
			return nil
		}
		bodies[i] = m.Pieces[i].Body
		size += len(bodies[i])
	}
	if f == nil || size > content.InlineLimit {
		return nil
	}
	firstFirst(bodies, m.first)
	body, err := Join(f, m.extras, bodies)
	if err != nil || len(body) > content.InlineLimit {
		return nil
	}
	return body
}

// Outline returns the message without the bodies of its pieces, only with names and ids. It is nil
// for a message without a form.
func (m *Message) Outline() []byte {
	if m.form == nil {
		return nil
	}
	bodies := make([][]byte, len(m.Pieces))
	for i := range m.Pieces {
		if m.Pieces[i].JSON {
			bodies[i] = []byte("null")
		}
	}
	firstFirst(bodies, m.first)
	outline, err := Join(m.form, m.extras, bodies)
	if err != nil {
		return nil
	}
	return outline
}

// Original returns the original message, of any size. If part of it was erased, the error matches
// backend.ErrErased.
func (r *Reader) Original(ctx context.Context, m *Message) ([]byte, error) {
	if !m.formed {
		return r.Body(ctx, &m.Pieces[0])
	}
	if m.form == nil {
		return nil, fmt.Errorf("form: %w", backend.ErrErased)
	}
	if m.Size() > MaxMessage {
		return nil, fmt.Errorf("%w: they have %d bytes", ErrMismatch, m.Size())
	}
	return r.join(ctx, m, func(p *Stored) ([]byte, error) { return r.Body(ctx, p) })
}

// Left returns the rest of a message after an erasure: the original JSON with the text Erased for
// each erased text and null for each other erased value; nil if all pieces were erased.
func (r *Reader) Left(ctx context.Context, m *Message) ([]byte, error) {
	left := 0
	body := func(p *Stored) ([]byte, error) {
		b, err := r.Body(ctx, p)
		switch {
		case errors.Is(err, backend.ErrErased) && p.JSON:
			return []byte("null"), nil
		case errors.Is(err, backend.ErrErased):
			return []byte(Erased), nil
		}
		left++
		return b, err
	}
	if !m.formed || m.form == nil || m.Size() > MaxMessage {
		return nil, nil
	}
	whole, err := r.join(ctx, m, body)
	if left == 0 {
		return nil, err
	}
	return whole, err
}

// join joins a message with a form.
func (r *Reader) join(ctx context.Context, m *Message, body func(*Stored) ([]byte, error)) (_ []byte, err error) {
	bodies := make([][]byte, len(m.Pieces))
	for i := range m.Pieces {
		if bodies[i], err = body(&m.Pieces[i]); err != nil {
			return nil, err
		}
	}
	firstFirst(bodies, m.first)
	return Join(m.form, m.extras, bodies)
}

// Body returns the body of a piece, of any size.
func (r *Reader) Body(ctx context.Context, p *Stored) ([]byte, error) {
	if p.Body != nil {
		return p.Body, nil
	}
	blocks, err := r.from.Blocks(ctx, []content.ID{p.Content})
	if err != nil {
		return nil, err
	}
	if b := blocks[0]; b.Tree.Size == 0 {
		return b.Body, nil
	}
	return io.ReadAll(content.VerifyReader(content.OpenTree(ctx, blocks[0].Tree, r.from.Chunks), p.Content))
}

// Excerpt returns the message with a note in brackets in place of each piece that was not read with
// the history, or was erased. start, when not nil, returns the start of a large text, which takes the
// place of its note. It is nil if the form was erased or does not match.
func (m *Message) Excerpt(start func(*Stored) []byte) []byte {
	bodies := make([][]byte, len(m.Pieces))
	for i := range m.Pieces {
		p := &m.Pieces[i]
		switch {
		case p.Erased && p.JSON:
			bodies[i] = rawjson.Quote(Erased)
		case p.Erased:
			bodies[i] = []byte(Erased)
		case p.Body != nil || p.Size == 0:
			bodies[i] = p.Body
		case p.JSON:
			bodies[i] = rawjson.Quote(p.note())
		case start == nil || p.Kind == structure.FilePiece:
			bodies[i] = []byte(p.note())
		default:
			bodies[i] = append(start(p), "…"...)
		}
	}
	if !m.formed {
		return bodies[0]
	}
	if m.form == nil {
		return nil
	}
	firstFirst(bodies, m.first)
	excerpt, err := Join(m.form, m.extras, bodies)
	if err != nil {
		return nil
	}
	return excerpt
}

// Erased replaces an erased text.
const Erased = "[erased]"

// note is the text for a piece that is not shown.
func (p *Stored) note() string { return fmt.Sprintf("[%v, %d bytes]", p.Kind, p.Size) }
