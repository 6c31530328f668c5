package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
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

// block returns the block of content, nil for content that was erased. What does not fit in a commit it stores
// before: a large body, or the marker of content that was erased.
func (s *loading) block(ctx context.Context, said *Said, id content.ID) (*structure.Block, error) {
	writer := write.Of(s.store)
	blocks, err := said.From.Blocks(ctx, []content.ID{id})
	if errors.Is(err, backend.ErrErased) {
		return nil, s.erased(ctx, writer, id)
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
		return writer.Upload(ctx, is, bytes.NewReader(b.Body))
	}
	return b, nil
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

// hang adds a message after a span, as it was said or, without that, as its data say. A new version is
// derived from the one before it, was. What a message was derived from is left out if it is not there.
func (s *loading) hang(ctx context.Context, c *change, after structure.SpanRef, m *Message, said *Said, was structure.SpanRef) (structure.SpanRef, error) {
	if said != nil {
		return s.hangSaid(ctx, c, after, m, said)
	}
	item, err := c.item(ctx, m)
	if isMissing(err) {
		s.from.Problem(&Error{Subject: SubjectMessage, ID: m.Origin.DerivedFrom, ChatID: m.ChatID, Err: ErrNotFound, Detail: m.ID + " was derived from it"})
		m.Origin.DerivedFrom, err = "", nil // also where it is tried again
	}
	if err == nil && !was.IsZero() {
		item.Origin.ParentID, err = c.contentAt(ctx, was)
	}
	if err != nil {
		return structure.SpanRef{}, err
	}
	item.CreatedAt = time.UnixMilli(m.CreatedAt).UTC()
	spans, err := c.thread.Hang(ctx, after, item)
	if err != nil {
		return structure.SpanRef{}, err
	}
	return spans[0], nil
}

// hangSaid adds a message as it was said.
func (s *loading) hangSaid(ctx context.Context, c *change, after structure.SpanRef, m *Message, said *Said) (structure.SpanRef, error) {
	var content []*structure.Block
	for i := range said.Usages {
		for _, id := range said.Usages[i].Named(nil) {
			b, err := s.block(ctx, said, *id)
			if err != nil {
				return structure.SpanRef{}, err
			}
			if b != nil {
				content = append(content, b)
			}
		}
	}
	return c.extend(ctx, after, content, loadedUsages(m, said, content))
}

// extend adds a span with usages after another one. content has the blocks that it brings.
func (c *change) extend(ctx context.Context, after structure.SpanRef, content []*structure.Block, usages []structure.Usage) (is structure.SpanRef, err error) {
	if err := c.keep(ctx); err != nil {
		return is, err
	}
	place, err := write.After(ctx, c.from, after, c.t.Home())
	if err != nil {
		return is, err
	}
	_, err = write.Of(c.store).Make(ctx, func(b *write.Batch, try write.Try) error {
		place.Fresh = place.Fresh || try.Fresh
		is = b.Extend(place, content, [][]structure.Usage{usages})[0]
		return nil
	})
	return is, err
}

// loadedUsages returns the usages of a message for the store: under the id of the message, and
// without what its blocks say.
func loadedUsages(m *Message, said *Said, content []*structure.Block) []structure.Usage {
	usages := slices.Clone(said.Usages)
	id, _ := sourceOf(usages)
	own := id == m.ID
	for i := range usages {
		u := &usages[i]
		if !own {
			u.SourceID, u.Lookup = "", 0
		}
		u.Lookup = min(u.Lookup, 1)
	}
	write.OmitStated(usages, content)
	if !own {
		usages[0].SourceID, usages[0].Lookup = m.ID, 1
	}
	return usages
}
