package lineage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// draft is a commit in the making. An engine keeps nothing of a commit's memory, so
// that of a draft is used again.
type draft struct {
	now time.Time
	// What the caller brings: the blocks of its content, in the order in which
	// usages name them, and the usages, by span.
	content []structure.Record
	steps   [][]structure.Usage
	// What becomes of it.
	records []structure.Record
	commit  structure.Commit
	tips    [1]backend.Expect

	// Memory of the above.
	blocks  []structure.Block
	usages  []structure.Usage
	origins []content.BlockOrigin
	spans   []structure.Span
	run     structure.Run
	tip     structure.Tip
	context structure.Context
}

// mostDrafted is how many items a draft may have had to be used again.
const mostDrafted = 64

func (s *Store) draft() *draft { return s.drafts.Get().(*draft) }

// discard lets go of what the caller gave to a draft.
func (s *Store) discard(d *draft) {
	if cap(d.usages) > mostDrafted || cap(d.spans) > mostDrafted {
		return
	}
	clear(d.blocks)
	clear(d.usages)
	clear(d.origins)
	d.context.Overrides, d.context.Metadata = Overrides{}, nil
	s.drafts.Put(d)
}

// take turns items into content and usages: a span for each, or together in one.
// Large bodies are stored on the way. It leaves with each usage only what differs
// from the block that the same commit offers: if the store turns out to have the
// block, the engine gives the usage what the offered one said.
func (d *draft) take(ctx context.Context, s *Store, items []Item, together bool) error {
	if together && len(items) == 0 {
		return fmt.Errorf("span of no items: %w", ErrInvalid)
	}
	d.now = s.now()
	n, now := len(items), kept(d.now)
	d.content, d.steps = d.content[:0], d.steps[:0]
	// What is pointed at must not move.
	d.blocks, d.usages, d.origins = slices.Grow(d.blocks[:0], n), slices.Grow(d.usages[:0], n), slices.Grow(d.origins[:0], n)
	for i := range items {
		item := items[i]
		if err := item.check(now); err != nil {
			return err
		}
		if item.Content.IsZero() {
			d.blocks = append(d.blocks, structure.Block{})
			b := &d.blocks[len(d.blocks)-1]
			if err := s.block(ctx, &item, b); err != nil {
				return err
			}
			d.content = append(d.content, b)
			item.Content = b.ID
		}
		d.origins = append(d.origins, content.BlockOrigin{})
		d.usages = append(d.usages, usageOf(&item, &d.origins[i]))
		if !together {
			d.steps = append(d.steps, d.usages[i:i+1:i+1])
		}
	}
	if together {
		d.steps = append(d.steps, d.usages)
	}
	d.leaveToBlocks()
	return nil
}

// leaveToBlocks takes from the usages what the first block offered with their
// content says.
func (d *draft) leaveToBlocks() {
	var first map[ContentID]*structure.Block
	if len(d.blocks) > 8 {
		first = make(map[ContentID]*structure.Block, len(d.blocks))
		for i := range d.blocks {
			if b := &d.blocks[i]; first[b.ID] == nil {
				first[b.ID] = b
			}
		}
	}
	for i := range d.usages {
		u := &d.usages[i]
		b := first[u.Content]
		for k := 0; first == nil && b == nil && k < len(d.blocks); k++ {
			if d.blocks[k].ID == u.Content {
				b = &d.blocks[k]
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

// time returns the time that was looked at last.
func (d *draft) time() time.Time {
	if d.now.IsZero() {
		d.now = time.Now()
	}
	return d.now
}

// grow makes the records that extend a context by usages, of content that comes in
// the order of the usages, and returns the new spans. They continue the run that
// the tip is in, or begin one of a home; whether that is where it ends the engine tells
// when it refuses.
// Content stands just before the span that uses it: that is short to say, and near
// when it is read.
func (d *draft) grow(c *structure.Context, home structure.Home, content []structure.Record, usages [][]structure.Usage, freshRun bool) []SpanRef {
	d.records = slices.Grow(d.records[:0], len(content)+len(usages)+2)
	d.spans = slices.Grow(d.spans[:0], len(usages))
	at := c.Tip
	if at.IsZero() || freshRun || !c.Set.IsZero() && c.Tip == c.Base {
		d.run = structure.Run{ID: structure.NewIDAt[structure.RunID](d.time()), Parent: c.Tip, Home: home}
		d.records = append(d.records, &d.run)
		at = SpanRef{Run: d.run.ID}
	}
	refs := make([]SpanRef, len(usages))
	for i, u := range usages {
		at.Seq++
		d.spans = append(d.spans, structure.Span{Ref: at, Usages: u})
		span := &d.spans[i]
		if i == 0 && c.Tip == c.Base {
			span.Set = c.Set
		}
		for k := range u {
			if len(content) > 0 && content[0].(*structure.Block).ID == u[k].Content {
				d.records, content = append(d.records, content[0]), content[1:]
			}
		}
		d.records = append(d.records, span)
		refs[i] = at
	}
	d.tip = structure.Tip{Context: c.ID, Span: at}
	d.records = append(d.records, &d.tip)
	return refs
}

// apply adds a commit of the draft's records, if a context stands where it should.
func (d *draft) apply(ctx context.Context, s *Store, expected ...backend.Expect) error {
	d.commit = structure.Commit{Time: d.now, Records: d.records}
	_, err := s.engine.Apply(ctx, &d.commit, backend.Options{Tips: d.tips[:copy(d.tips[:], expected)]})
	return tipMoved(err)
}

// fork makes the draft one of a fork of a context, and returns its record.
func (d *draft) fork(s *Store, parent *structure.Context, o *ForkOptions) *structure.Context {
	d.now = s.now()
	forkTo(&d.context, parent, o, d.now)
	d.records = append(d.records[:0], &d.context)
	return &d.context
}
