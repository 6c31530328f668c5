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

// MessageOf returns the message that the usages of a span make up. blocks are the blocks of the usages, in the same order.
// The message has no chat and no parent. It is an error if a form does not match its pieces.
func MessageOf(ctx context.Context, from form.Blocks, usages []structure.Usage, blocks []*structure.Block, id string) (Message, error) {
	r := &ThreadReader{messages: form.NewReader(from), exact: true}
	var span structure.Span
	span.Usages = usages
	step := &backend.Step{Span: &span, Blocks: blocks}
	return r.message(ctx, step, id)
}

// contentOf returns a block of a message's original content. It returns nil for erased content, for which it stores a
// marker.
func (s *loading) contentOf(ctx context.Context, source *Said, id content.ID) (*place.Content, error) {
	blocks, err := source.From.Blocks(ctx, []content.ID{id})
	if errors.Is(err, backend.ErrErased) {
		return nil, s.erased(ctx, write.Of(s.store), id)
	}
	if err != nil {
		return nil, err
	}
	stored := blocks[0].Block
	b := structure.NewBlock(stored.Type, stored.Origin, stored.CreatedAt, blocks[0].Body)
	if b.ID != id {
		return nil, fmt.Errorf("content %v is not what its id says: %w", id, ErrInvalid)
	}
	if len(b.Body) > content.InlineLimit {
		return &place.Content{ID: id, Type: stored.Type, Kind: stored.Origin.Kind, Body: b.Body}, nil
	}
	return &place.Content{ID: id, Block: b}, nil
}

// erased stores a marker for content that was erased in its source, unless the store has the content.
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
