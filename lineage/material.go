package lineage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// material is what items are made of, ready to be placed: the blocks of their content, in
// the order in which usages name them, and the usages, by step. Its memory can be used
// again.
type material struct {
	content []*structure.Block
	steps   [][]structure.Usage

	blocks  []structure.Block
	usages  []structure.Usage
	origins []content.BlockOrigin
}

// mostKept is how many items there may have been for the memory to be used again.
const mostKept = 64

// clear lets go of what the caller gave. It reports whether the memory can be used again.
func (m *material) clear() bool {
	clear(m.blocks)
	clear(m.usages)
	clear(m.origins)
	return cap(m.usages) <= mostKept
}

// prepare takes the items when a change is tried first, and again where a collection took
// pieces of a body after it was uploaded.
func (m *material) prepare(ctx context.Context, s *Store, items []Item, together bool, b *write.Batch, t write.Try) error {
	switch {
	case t.Taken("source id"):
		return t.Err
	case write.Gone(t.Err) && !repeatable(items):
		return t.Err
	case t.Number == 0 || write.Gone(t.Err):
		return m.take(ctx, s, items, together, b.Time())
	}
	return nil
}

// repeatable reports whether the items can be read again.
func repeatable(items []Item) bool {
	return !slices.ContainsFunc(items, func(i Item) bool { return i.Reader != nil })
}

// take turns items into content and usages: a step for each, or together in one.
// Large bodies are uploaded on the way. It leaves with each usage only what differs
// from the block that the same commit offers: if the store turns out to have the
// block, the engine gives the usage what the offered one said.
func (m *material) take(ctx context.Context, s *Store, items []Item, together bool, now time.Time) error {
	if together && len(items) == 0 {
		return fmt.Errorf("span of no items: %w", ErrInvalid)
	}
	if s.inTransaction() && !repeatable(items) {
		return errReaderInside
	}
	n := len(items)
	m.content, m.steps = m.content[:0], m.steps[:0]
	// What is pointed at must not move.
	m.blocks, m.usages, m.origins = slices.Grow(m.blocks[:0], n), slices.Grow(m.usages[:0], n), slices.Grow(m.origins[:0], n)
	for i := range items {
		item := items[i]
		if err := item.check(now); err != nil {
			return err
		}
		if item.Content.IsZero() {
			m.blocks = m.blocks[:len(m.blocks)+1]
			b := &m.blocks[len(m.blocks)-1]
			if err := s.block(ctx, &item, b); err != nil {
				return err
			}
			m.content = append(m.content, b)
			item.Content = b.ID
		}
		m.origins = append(m.origins, content.BlockOrigin{})
		m.usages = append(m.usages, usageOf(&item, &m.origins[i]))
		if !together {
			m.steps = append(m.steps, m.usages[i:i+1:i+1])
		}
	}
	if together {
		m.steps = append(m.steps, m.usages)
	}
	m.leaveToBlocks()
	return nil
}

// leaveToBlocks takes from the usages what the first block offered with their
// content says.
func (m *material) leaveToBlocks() {
	var first map[ContentID]*structure.Block
	if len(m.blocks) > 8 {
		first = make(map[ContentID]*structure.Block, len(m.blocks))
		for i := range m.blocks {
			if b := &m.blocks[i]; first[b.ID] == nil {
				first[b.ID] = b
			}
		}
	}
	for i := range m.usages {
		u := &m.usages[i]
		b := first[u.Content]
		for k := 0; first == nil && b == nil && k < len(m.blocks); k++ {
			if m.blocks[k].ID == u.Content {
				b = &m.blocks[k]
			}
		}
		if b == nil {
			continue
		}
		if u.Type == b.Type {
			u.Type = ""
		}
		if u.Origin != nil && *u.Origin == b.Origin {
			u.Origin = nil
		}
	}
}

// usageOf returns the usage that an item is. Its origin, if it says one, is put
// where origin points.
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
	if of := i.Origin.OfBlock(); of != (content.BlockOrigin{}) {
		*origin = of
		u.Origin = origin
	}
	return u
}
