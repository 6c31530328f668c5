package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

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

// addition are messages to be added one after another: all as their data say, or all as they
// were said.
type addition struct {
	messages []Message
	said     []*Said // nil for data
	content  []*structure.Block
}

// additions divides messages.
func additions(messages []Message, said []*Said) (list []*addition) {
	for i, m := range messages {
		n := len(list) - 1
		if n < 0 || (list[n].said == nil) != (said[i] == nil) {
			list, n = append(list, new(addition)), n+1
		}
		a := list[n]
		if a.messages = append(a.messages, m); said[i] != nil {
			a.said = append(a.said, said[i])
		}
	}
	return list
}

// mostTaken is how often content is stored that a collection takes before it is used.
const mostTaken = 5

// taking makes a commit of additions.
func (s *loading) taking(ctx context.Context, list []*addition, commit func() error) error {
	for try := 1; ; try++ {
		for _, a := range list {
			if err := s.take(ctx, a); err != nil {
				return err
			}
		}
		if err := commit(); !write.Gone(err) || try == mostTaken {
			return err
		}
	}
}

// takingVersions is taking for the new versions.
func (s *loading) takingVersions(ctx context.Context, commit func() error) error {
	var list []*addition
	for i := range s.versions {
		v := &s.versions[i]
		if v.same {
			continue
		}
		said, err := s.said(ctx, []Message{v.Message})
		if err != nil {
			return err
		}
		v.added = additions([]Message{v.Message}, said)[0]
		list = append(list, v.added)
	}
	return s.taking(ctx, list, commit)
}

// take stores what does not fit in the commit of the addition: large bodies, and markers for
// content that was erased. It must be called again where a collection took some of that.
func (s *loading) take(ctx context.Context, a *addition) error {
	a.content = a.content[:0]
	for _, said := range a.said {
		for i := range said.Usages {
			for _, id := range said.Usages[i].Named(nil) {
				b, err := s.block(ctx, said, *id)
				if err != nil {
					return err
				}
				if b != nil {
					a.content = append(a.content, b)
				}
			}
		}
	}
	return nil
}

// block returns the block of content, nil for content that is only here, or that was erased.
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

// hang adds messages behind a span. origin returns the origin of one that is added as its data say.
func (s *loading) hang(
	ctx context.Context, in *state, t *structure.Thread, after structure.SpanRef, a *addition, origin func(*Message) (lineage.Origin, error),
) (spans []structure.SpanRef, err error) {
	thread, err := in.store.Thread(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	if a.said == nil {
		items := make([]lineage.Item, len(a.messages))
		for i := range items {
			items[i] = loadedItem(&a.messages[i])
			if items[i].Origin, err = origin(&a.messages[i]); err != nil {
				return nil, err
			}
		}
		return thread.Hang(ctx, after, items...)
	}
	if err := keep(ctx, t, thread); err != nil {
		return nil, err
	}
	steps := make([][]structure.Usage, len(a.said))
	for i, said := range a.said {
		steps[i] = loadedUsages(&a.messages[i], said, a.content)
	}
	place, err := write.Behind(ctx, in.from, after, t.Home())
	if err != nil {
		return nil, err
	}
	_, err = write.Of(in.store).Make(ctx, func(b *write.Batch, try write.Try) error {
		place.Fresh = place.Fresh || try.Fresh
		spans = b.Extend(place, a.content, steps)
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
