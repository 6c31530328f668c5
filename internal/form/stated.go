package form

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// unread stands for a block that is not read, or is gone.
var unread = structure.Described(content.Block{})

// Block returns a block that known has, or else one that the store has, and adds it to known. One that is gone has no body.
func (r *Reader) Block(ctx context.Context, id content.ID, known map[content.ID]*structure.Block) (*structure.Block, error) {
	if b := known[id]; b != nil {
		return b, nil
	}
	blocks, err := r.from.Blocks(ctx, []content.ID{id})
	switch {
	case errors.Is(err, backend.ErrErased), errors.Is(err, backend.ErrNotFound):
		known[id] = unread
	case err != nil:
		return nil, err
	default:
		known[id] = blocks[0]
	}
	return known[id], nil
}

// Stated returns the message that starts at usage i without its texts and the inputs of its calls, and its metadata. A value
// that is larger than a limit, or is gone, is null. The body is nil for a text, and if the form was erased or does not match.
// Blocks that are needed and that known does not have are read, and added to it.
func (r *Reader) Stated(ctx context.Context, usages []structure.Usage, i int, known map[content.ID]*structure.Block, limit int) (body, metadata []byte, err error) {
	u := &usages[i]
	for _, id := range []content.ID{u.Form, u.MetadataContent} {
		if b := known[id]; b != nil && b.Body != nil {
			r.Know(id, b.Body)
		}
	}
	if metadata, err = r.Metadata(ctx, u); err != nil {
		return nil, nil, err
	}
	if u.Form.IsZero() {
		body, err = r.value(ctx, u, known, limit)
		return body, metadata, err
	}
	form, err := r.form(ctx, u.Form)
	if form == nil || err != nil {
		return nil, metadata, err
	}
	var few [8][]byte
	values := few[:0]
	for k := i; k < End(usages, i); k++ {
		var value []byte
		switch usages[k].Piece {
		case structure.TextPiece, structure.ReasoningPiece, structure.InputPiece:
		default:
			if value, err = r.value(ctx, &usages[k], known, limit); err != nil {
				return nil, nil, err
			}
		}
		if usages[k].Content == nothing { // the piece of a message without content, which its form has
			value = []byte{}
		}
		values = append(values, value)
	}
	out := make([]byte, 0, 2*len(form))
	err = join(form, u.Extras, values, func(b []byte) { out = append(out, b...) }, func(b []byte) {
		if b == nil {
			b = []byte("null")
		}
		out = append(out, b...)
	}, func(s *style, text []byte) { out = s.quote(out, text) })
	if err != nil {
		return nil, metadata, nil
	}
	return out, metadata, nil
}

var nothing = content.Sum(nil)

// value returns the body of a piece that is JSON, nil for a text and if it is gone or larger than a limit.
func (r *Reader) value(ctx context.Context, p *structure.Usage, known map[content.ID]*structure.Block, limit int) ([]byte, error) {
	if p.Type != content.TypeJSON && p.Type != "" {
		return nil, nil
	}
	b, err := r.Block(ctx, p.Content, known)
	if err != nil || p.Type == "" && b.Type != content.TypeJSON || len(b.Body) > limit {
		return nil, err
	}
	return b.Body, nil
}
