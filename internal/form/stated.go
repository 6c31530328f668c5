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

// Stated returns the message that starts at usage i without its texts, as Brief does, and its metadata. Blocks that known does not
// have are read, but not those of texts, and are added to it.
func (r *Reader) Stated(ctx context.Context, usages []structure.Usage, i int, known map[content.ID]*structure.Block, limit int) (body, metadata []byte, err error) {
	u := &usages[i]
	blocks := make([]*structure.Block, len(usages))
	for k := i; k < End(usages, i); k++ {
		p := &usages[k]
		blocks[k] = unread
		if b := known[p.Content]; b != nil {
			blocks[k] = b
		} else if (p.Type == content.TypeJSON || p.Type == "") && (p.Piece != structure.TextPiece && p.Piece != structure.ReasoningPiece || u.Form.IsZero()) {
			if blocks[k], err = r.Block(ctx, p.Content, known); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, id := range []content.ID{u.Form, u.MetadataContent} {
		if b := known[id]; b != nil && b.Body != nil {
			r.Know(id, b.Body)
		}
	}
	m, err := r.message(ctx, usages, blocks, i)
	if err != nil {
		return nil, nil, err
	}
	metadata, err = r.Metadata(ctx, u)
	return m.Brief(limit), metadata, err
}
