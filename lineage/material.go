package lineage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// material is the form of items in a commit: their blocks, in the order in which usages refer to them, and the usages
// of each step. Its memory is reused.
type material struct {
	content []*structure.Block
	steps   [][]structure.Usage

	blocks  []structure.Block
	usages  []structure.Usage
	origins []content.BlockOrigin
	starts  []int // of each step, the index of its first usage
}

// maxReused is the largest number of usages whose memory is kept for reuse.
const maxReused = 64

// clear drops references to the caller's data. It reports whether the memory can be reused.
func (m *material) clear() bool {
	clear(m.blocks)
	clear(m.usages)
	clear(m.origins)
	clear(m.content[:cap(m.content)])
	return cap(m.usages) <= maxReused
}

// prepare builds the material at the first attempt of a change. It builds it again if a collection has deleted pieces
// of an uploaded body.
func (m *material) prepare(ctx context.Context, s *Store, items []Item, b *write.Batch, t write.Try) error {
	switch {
	case t.Taken("source id"):
		return t.Err
	case write.Gone(t.Err) && !repeatable(items):
		return t.Err
	case t.Number == 0 || write.Gone(t.Err):
		return m.build(ctx, s, items, b.Time())
	}
	return nil
}

// repeatable reports whether the items can be read again.
func repeatable(items []Item) bool {
	return !slices.ContainsFunc(items, func(i Item) bool { return i.Reader != nil })
}

// build turns items into blocks and usages: one step for each item that does not join the previous one. It uploads
// large bodies. A usage states only fields that differ from its block in the same commit. If the store has the block
// already, the engine adds the fields of the new block to the usage.
func (m *material) build(ctx context.Context, s *Store, items []Item, now time.Time) error {
	if s.inTransaction() && !repeatable(items) {
		return errReaderInside
	}
	n := len(items)
	m.content, m.steps, m.starts, m.usages = m.content[:0], m.steps[:0], m.starts[:0], m.usages[:0]
	// Pointers to blocks and origins are taken, so they must not move.
	m.blocks, m.usages, m.origins = slices.Grow(m.blocks[:0], n), slices.Grow(m.usages, n), slices.Grow(m.origins[:0], n)
	for i := range items {
		item := items[i]
		if err := item.check(now); err != nil {
			return err
		}
		m.origins = append(m.origins, content.BlockOrigin{})
		first := len(m.usages)
		if !item.joins {
			m.starts = append(m.starts, first)
		}
		var err error
		switch {
		case !item.Content.IsZero():
			m.usages = appendUsages(m.usages, &item, &m.origins[i])
		case item.Kind == Message && item.Type == content.TypeJSON:
			err = m.message(ctx, s, &item, &m.origins[i])
		default:
			m.blocks = m.blocks[:len(m.blocks)+1]
			b := &m.blocks[len(m.blocks)-1]
			err = s.block(ctx, &item, b)
			m.content = append(m.content, b)
			item.Content = b.ID
			m.usages = appendUsages(m.usages, &item, &m.origins[i])
		}
		if err == nil && m.usages[first].Metadata != nil {
			err = write.Metadata(&m.usages[first], m.storing(ctx, s, &item))
		}
		if err != nil {
			return err
		}
		m.dropOwnParent(first)
	}
	for i, start := range m.starts {
		end := len(m.usages)
		if i+1 < len(m.starts) {
			end = m.starts[i+1]
		}
		m.steps = append(m.steps, m.usages[start:end:end])
	}
	write.OmitStated(m.usages, m.content)
	return nil
}

// dropOwnParent removes a parent that is the content itself: an edit without a change is not
// derived from anything.
func (m *material) dropOwnParent(i int) {
	u := &m.usages[i]
	if u.Origin == nil || u.Origin.ParentID != u.Content {
		return
	}
	u.Origin.ParentID = ContentID{}
	for _, b := range m.content {
		if b.ID == u.Content {
			b.Origin.ParentID = ContentID{}
		}
	}
}

// message adds a JSON message. A message that is too large to be split is stored whole.
func (m *material) message(ctx context.Context, s *Store, item *Item, origin *content.BlockOrigin) error {
	if item.Reader != nil {
		head, err := io.ReadAll(io.LimitReader(item.Reader, form.MaxMessage+1))
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		if len(head) > form.MaxMessage {
			item.Reader = io.MultiReader(bytes.NewReader(head), item.Reader)
			var b structure.Block
			if err := s.block(ctx, item, &b); err != nil {
				return err
			}
			m.content = append(m.content, &b)
			item.Content = b.ID
			m.usages = appendUsages(m.usages, item, origin)
			m.usages[len(m.usages)-1].Opaque = true
			return nil
		}
		item.Body, item.Reader = head, nil
	}
	parent := item.Origin.ParentID // of the first piece
	storing := m.storing(ctx, s, item)
	store := func(mediaType string, kind content.OriginKind, body []byte) (ContentID, error) {
		id, err := storing(mediaType, kind, body)
		m.content[len(m.content)-1].Origin.ParentID, parent = parent, ContentID{}
		return id, err
	}
	var err error
	m.usages, err = write.Message(m.usages, usageOf(item, origin), item.Type, item.Body, store)
	return err
}

// storing returns a function that stores further content of an item.
func (m *material) storing(ctx context.Context, s *Store, item *Item) write.StoreFunc {
	return func(mediaType string, kind content.OriginKind, body []byte) (ContentID, error) {
		var b structure.Block
		err := s.block(ctx, &Item{Body: body, Type: mediaType, Origin: Origin{Kind: kind}, CreatedAt: item.CreatedAt}, &b)
		m.content = append(m.content, &b)
		return b.ID, err
	}
}

// appendUsages appends the usages of an item: one, or those of the entry that it was made from. If
// the item has a block origin, it is stored in *origin.
func appendUsages(dst []structure.Usage, i *Item, origin *content.BlockOrigin) []structure.Usage {
	u := usageOf(i, origin)
	if i.Kind == Message {
		u.Piece = form.PlainPiece(i.Role)
	}
	if len(i.parts) == 0 || i.parts[0].Content != i.Content {
		return append(dst, u)
	}
	first := &i.parts[0]
	u.Form, u.Extras, u.Opaque, u.Type = first.Form, first.Extras, first.Opaque, first.Type
	if !first.Form.IsZero() {
		u.Piece = first.Piece // without a form it follows from the role
	}
	dst = append(dst, u)
	for _, part := range i.parts[1:] {
		part.CreatedAt = u.CreatedAt
		dst = append(dst, part)
	}
	return dst
}

// usageOf returns the usage of an item. If the item has a block origin, it is stored in *origin.
func usageOf(i *Item, origin *content.BlockOrigin) structure.Usage {
	u := structure.Usage{
		Kind: i.Kind, Content: i.Content, Role: i.Role, Document: i.Document, Revision: i.Revision,
		Filename: i.Filename, Type: i.Type, SourceID: i.SourceID, Metadata: i.Metadata,
		CreatedAt: i.CreatedAt.UTC(), By: i.Origin.Attribution(),
	}
	if i.Name != i.Role {
		u.Name = i.Name
	}
	if u.SourceID != "" {
		u.Lookup = 1
	}
	if stated := i.Origin.OfBlock(); stated != (content.BlockOrigin{}) {
		*origin = stated
		u.Origin = origin
	}
	return u
}
