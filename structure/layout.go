package structure

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
)

// Layout has the positions of the blocks and spans in a commit's payload, so that each span
// can be read alone, with only the blocks that it uses. It is safe for concurrent reads.
type Layout struct {
	// Time is the commit's time.
	Time time.Time

	payload []byte
	blocks  []extent
	spans   []laidSpan
}

// extent is where the body of a record is in the payload.
type extent struct{ start, end uint32 }

type laidSpan struct {
	ref    SpanRef
	body   extent
	blocks uint32 // the number of blocks before it
}

// Reading is a span as it was read, in memory that the next reading into it uses
// again.
type Reading struct {
	Span Span
	// Local has the block of each usage that refers to an earlier block of the commit, nil for
	// other usages.
	Local []*Block

	usages [1]Usage // what most spans need
	locals [1]*Block
	blocks [1]Block
	from   laidBlocks
}

// Begin makes the reading ready for a span.
func (r *Reading) Begin() {
	if r.Local == nil {
		r.Span.Usages, r.Local = r.usages[:0], r.locals[:0]
	}
	r.Span = Span{Usages: r.Span.Usages[:0]}
	r.Local = r.Local[:0]
}

// Block returns where to put the block of a usage.
func (r *Reading) Block(usage int) *Block {
	for len(r.Local) <= usage {
		r.Local = append(r.Local, nil)
	}
	b := &r.blocks[0]
	if usage > 0 {
		b = &Block{}
	}
	*b = Block{}
	r.Local[usage] = b
	return b
}

// End leaves the usages that have no block in the commit without one.
func (r *Reading) End() {
	for len(r.Local) < len(r.Span.Usages) {
		r.Local = append(r.Local, nil)
	}
}

// Reset lays out another payload, which must not change while the layout is used,
// and keeps the layout's buffers. Of the records it checks nothing but where they
// end and where spans belong.
func (l *Layout) Reset(payload []byte) error {
	*l = Layout{payload: payload, blocks: l.blocks[:0], spans: l.spans[:0]}
	d := Decoder{}
	if err := d.Reset(payload); err != nil {
		return err
	}
	if uint64(len(payload)) > math.MaxUint32 {
		return fmt.Errorf("%w: %d bytes", ErrMalformed, len(payload))
	}
	l.Time = d.Time
	var last SpanRef
	for d.More() {
		offset := d.size - len(d.c.rest)
		kind, body := d.c.record()
		if d.c.err != nil {
			return d.c.err
		}
		end := d.size - len(d.c.rest)
		at := extent{uint32(end - len(body)), uint32(end)}
		switch kind {
		case KindBlock:
			l.blocks = append(l.blocks, at)
		case KindSpan:
			c := cursor{rest: body}
			last = c.placeOf(c.byte("span flags"), last)
			if c.err != nil {
				return fmt.Errorf("%v at byte %d: %w", kind, offset, c.err)
			}
			l.spans = append(l.spans, laidSpan{last, at, uint32(len(l.blocks))})
		}
	}
	return nil
}

// Clone returns a layout of the same payload with buffers of its own.
func (l *Layout) Clone() *Layout {
	return &Layout{Time: l.Time, payload: l.payload, blocks: slices.Clone(l.blocks), spans: slices.Clone(l.spans)}
}

// Size is about how much memory the layout and its payload take.
func (l *Layout) Size() int { return len(l.payload) + 8*len(l.blocks) + 40*len(l.spans) + 256 }

// Len returns how many spans the commit has.
func (l *Layout) Len() int { return len(l.spans) }

// Ref returns the place of the i-th span.
func (l *Layout) Ref(i int) SpanRef { return l.spans[i].ref }

// Find returns which span of the commit has a place, or -1. The spans of a run
// mostly stand side by side.
func (l *Layout) Find(ref SpanRef) int {
	for i := range l.spans {
		s := &l.spans[i]
		if s.ref.Run != ref.Run {
			continue
		}
		if s.ref.Seq == ref.Seq {
			return i
		}
		if ahead := ref.Seq - s.ref.Seq; ahead < uint64(len(l.spans)-i) && l.spans[i+int(ahead)].ref == ref {
			return i + int(ahead)
		}
	}
	return -1
}

// Read reads the i-th span. What it returns shares memory with the payload, unless
// own is set.
func (l *Layout) Read(i int, own bool, into *Reading) error {
	s := &l.spans[i]
	var last SpanRef
	if i > 0 {
		last = l.spans[i-1].ref
	}
	into.Begin()
	c := cursor{rest: l.bytes(s.body)}
	into.from = laidBlocks{l: l, before: l.blocks[:s.blocks], own: own, into: into}
	c.span(&into.Span, last, l.Time, &into.from)
	into.from = laidBlocks{}
	if err := c.end(); err != nil {
		return fmt.Errorf("%v at byte %d: %w", KindSpan, s.body.start, err)
	}
	into.End()
	if own {
		for i := range into.Span.Usages {
			into.Span.Usages[i].CloneBytes()
		}
	}
	return nil
}

func (l *Layout) bytes(at extent) []byte { return l.payload[at.start:at.end:at.end] }

// laidBlocks decodes the blocks that a span refers to.
type laidBlocks struct {
	l      *Layout
	before []extent
	own    bool
	into   *Reading
}

func (b *laidBlocks) local(usage int, back uint64) (content.ID, error) {
	block := b.into.Block(usage)
	err := b.read(block, back)
	if b.own {
		block.Body = bytes.Clone(block.Body)
	}
	return block.ID, err
}

func (b *laidBlocks) aside(back uint64) (content.ID, error) {
	var block Block
	err := b.read(&block, back)
	return block.ID, err
}

func (b *laidBlocks) read(block *Block, back uint64) error {
	if back >= uint64(len(b.before)) {
		return errNotLocal
	}
	c := cursor{rest: b.l.bytes(b.before[len(b.before)-1-int(back)])}
	c.block(block)
	return c.end()
}
