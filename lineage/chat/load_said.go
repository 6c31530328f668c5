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
	"github.com/lineage-store/lineage/lineage"
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

// said returns what messages are made of; nil for those of which only the data are known.
func (s *loading) said(ctx context.Context, messages []Message) ([]*Said, error) {
	if s.from.Said == nil {
		return make([]*Said, len(messages)), nil
	}
	return s.from.Said(ctx, messages)
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
	if b.ID == id && len(b.Body) > content.InlineLimit {
		b, err = writer.Upload(ctx, is, bytes.NewReader(b.Body))
	}
	if err == nil && b.ID != id {
		err = fmt.Errorf("content %v is not what its id says: %w", id, ErrInvalid)
	}
	return b, err
}

// erased leaves a marker for content that was erased elsewhere, unless it is here.
func (s *loading) erased(ctx context.Context, writer *write.Writer, id content.ID) error {
	_, err := writer.Engine().Blocks(ctx, []content.ID{id})
	if !isNotFound(err) {
		if errors.Is(err, backend.ErrErased) {
			err = nil
		}
		return err
	}
	_, err = writer.Make(ctx, func(b *write.Batch, _ write.Try) error {
		b.Adopt(structure.Described(content.Block{ID: id, Size: 1}))
		b.Erase(id)
		return nil
	})
	return err
}

// hang adds a message after a span, as it was said or, without that, as its data say. A new version is
// derived from the one before it, was.
func (s *loading) hang(ctx context.Context, in *state, t *structure.Thread, after structure.SpanRef, m *Message, said *Said, was structure.SpanRef) (structure.SpanRef, error) {
	thread, err := in.store.Thread(ctx, t.ID)
	if err != nil {
		return structure.SpanRef{}, err
	}
	var spans []structure.SpanRef
	if said == nil {
		item := itemOf(m)
		item.CreatedAt = time.UnixMilli(m.CreatedAt).UTC()
		item.Origin, err = s.origin(ctx, in, t, m)
		if err == nil && !was.IsZero() {
			item.Origin.ParentID, err = in.contentAt(ctx, was)
		}
		if err == nil {
			spans, err = thread.Hang(ctx, after, item)
		}
	} else if err = keep(ctx, t, thread); err == nil {
		spans, err = s.hangSaid(ctx, in, t, after, m, said)
	}
	if err != nil {
		return structure.SpanRef{}, err
	}
	return spans[0], nil
}

// origin returns the origin of a message, without what it was derived from if that is not there.
func (s *loading) origin(ctx context.Context, in *state, t *structure.Thread, m *Message) (lineage.Origin, error) {
	origin, err := in.originIn(ctx, t, m)
	if isMissing(err) {
		s.from.Problem(&Error{Subject: SubjectMessage, ID: m.Origin.DerivedFrom, ChatID: m.ChatID, Err: ErrNotFound, Detail: m.ID + " was derived from it"})
		m.Origin.DerivedFrom, err = "", nil // also where it is tried again
	}
	return origin, err
}

// hangSaid adds a message as it was said.
func (s *loading) hangSaid(ctx context.Context, in *state, t *structure.Thread, after structure.SpanRef, m *Message, said *Said) (spans []structure.SpanRef, err error) {
	var content []*structure.Block
	for i := range said.Usages {
		for _, id := range said.Usages[i].Named(nil) {
			b, err := s.block(ctx, said, *id)
			if err != nil {
				return nil, err
			}
			if b != nil {
				content = append(content, b)
			}
		}
	}
	place, err := write.After(ctx, in.from, after, t.Home())
	if err != nil {
		return nil, err
	}
	_, err = write.Of(in.store).Make(ctx, func(b *write.Batch, try write.Try) error {
		place.Fresh = place.Fresh || try.Fresh
		spans = b.Extend(place, content, [][]structure.Usage{loadedUsages(m, said, content)})
		return nil
	})
	return spans, err
}

// loadedUsages returns the usages of a message for the store: under the id of the message, and
// without what its blocks say.
func loadedUsages(m *Message, said *Said, blocks []*structure.Block) []structure.Usage {
	usages := slices.Clone(said.Usages)
	sourced := sourced(usages)
	own := sourced != nil && sourced.SourceID == m.ID
	for i := range usages {
		u := &usages[i]
		if !own {
			u.SourceID, u.Lookup = "", 0
		}
		u.Lookup = min(u.Lookup, 1)
		for _, b := range blocks {
			if b.ID != u.Content {
				continue
			}
			if u.Type == b.Type {
				u.Type = ""
			}
			if u.Origin != nil && *u.Origin == b.Origin {
				u.Origin = nil
			}
			break
		}
	}
	if !own {
		usages[0].SourceID, usages[0].Lookup = m.ID, 1
	}
	return usages
}
