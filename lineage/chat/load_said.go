package chat

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Said is what a message is made of: the usages of its span, each with its type and origin, and
// the content that they name.
type Said struct {
	Usages []structure.Usage
	// From has the content, with the whole body in each block.
	From form.Blocks
}

// Tell returns what the usages of a span say as a message. blocks are what they name as their
// content, in their order. The message is one of no chat and has no parent. A form that does not
// go with its pieces is an error.
func Tell(ctx context.Context, from form.Blocks, usages []structure.Usage, blocks []*structure.Block, id string) (Message, error) {
	r := &ThreadReader{messages: form.NewReader(from), exact: true}
	var span structure.Span
	span.Usages = usages
	step := &backend.Step{Span: &span, Blocks: blocks}
	return r.tell(ctx, step, id)
}

// contentOf returns content that a message was said with, nil for content that was erased: a marker of that is
// stored at once.
func (s *loading) contentOf(ctx context.Context, said *Said, id content.ID) (*place.Content, error) {
	blocks, err := said.From.Blocks(ctx, []content.ID{id})
	if errors.Is(err, backend.ErrErased) {
		return nil, s.erased(ctx, write.Of(s.store), id)
	}
	if err != nil {
		return nil, err
	}
	is := blocks[0].Block
	b := structure.NewBlock(is.Type, is.Origin, is.CreatedAt, blocks[0].Body)
	if b.ID != id {
		return nil, fmt.Errorf("content %v is not what its id says: %w", id, ErrInvalid)
	}
	if len(b.Body) > content.InlineLimit {
		return &place.Content{ID: id, Type: is.Type, Kind: is.Origin.Kind, Body: b.Body}, nil
	}
	return &place.Content{ID: id, Block: b}, nil
}

// erased leaves a marker for content that was erased elsewhere, unless it is here.
func (s *loading) erased(ctx context.Context, writer *write.Writer, id content.ID) error {
	_, err := writer.Engine().Blocks(ctx, []content.ID{id})
	if isNotFound(err) {
		_, err = writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
			b.Adopt(structure.Described(content.Block{ID: id, Size: 1}))
			b.Erase(id)
			return nil
		})
	}
	if errors.Is(err, backend.ErrErased) {
		return nil
	}
	return err
}
