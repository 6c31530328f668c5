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
	names   []laidName
	spans   []laidSpan
}

// laidName is the place of an id by which spans can name content: the extent of a block
// record, or the id itself, for which only start is set.
type laidName struct{ extent }

func (n laidName) isID() bool { return n.end == 0 }

// extent is the place of a record's body in the payload.
type extent struct{ start, end uint32 }

type laidSpan struct {
	ref   SpanRef
	body  extent
	names uint32 // number of names that it can use
}

// Reading is a decoded span. Its memory is reused by the next read into it.
type Reading struct {
	Span Span
	// Local has, for each usage, the block if it is earlier in the commit, or nil.
	Local []*Block

	usages [1]Usage // enough for most spans
	locals [1]*Block
	blocks [1]Block
	from   laidNames
}

// Begin prepares the reading for a span.
func (r *Reading) Begin() {
	if r.Local == nil {
		r.Span.Usages, r.Local = r.usages[:0], r.locals[:0]
	}
	r.Span = Span{Usages: r.Span.Usages[:0]}
	r.Local = r.Local[:0]
}

// Block returns memory for the block of a usage.
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

// End sets nil blocks for the remaining usages.
func (r *Reading) End() {
	for len(r.Local) < len(r.Span.Usages) {
		r.Local = append(r.Local, nil)
	}
}

// Reset lays out another payload, which must not change while the layout is used, and keeps
// the layout's buffers. It checks only where records end and the places of spans.
func (l *Layout) Reset(payload []byte) error {
	*l = Layout{payload: payload, names: l.names[:0], spans: l.spans[:0]}
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
			l.names = append(l.names, laidName{at})
		case KindSpan:
			c := decoder{rest: body}
			flags := c.byte("span flags")
			last = c.placeOf(flags, last)
			if flags&spanInSet != 0 {
				c.take(uint64(len(SpanSetID{})), "span set")
			}
			ids := c.stated(flags)
			if c.err != nil {
				return fmt.Errorf("%v at byte %d: %w", kind, offset, c.err)
			}
			for start := end - len(c.rest) - len(ids); len(ids) > 0; start += len(content.ID{}) {
				l.names = append(l.names, laidName{extent{start: uint32(start)}})
				ids = ids[len(content.ID{}):]
			}
			l.spans = append(l.spans, laidSpan{last, at, uint32(len(l.names))})
		}
	}
	return nil
}

// Clone returns a layout of the same payload with its own buffers.
func (l *Layout) Clone() *Layout {
	return &Layout{Time: l.Time, payload: l.payload, names: slices.Clone(l.names), spans: slices.Clone(l.spans)}
}

// Size is the approximate size of the layout and its payload in memory.
func (l *Layout) Size() int { return len(l.payload) + 8*len(l.names) + 40*len(l.spans) + 256 }

// Len returns the number of spans.
func (l *Layout) Len() int { return len(l.spans) }

// Ref returns the place of the i-th span.
func (l *Layout) Ref(i int) SpanRef { return l.spans[i].ref }

// Find returns the index of a span, or -1. It is fast if the spans of a run are adjacent.
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

// Read reads the i-th span. The result shares memory with the payload, unless own is set.
func (l *Layout) Read(i int, own bool, into *Reading) error {
	s := &l.spans[i]
	var last SpanRef
	if i > 0 {
		last = l.spans[i-1].ref
	}
	into.Begin()
	into.from = laidNames{l: l, names: l.names[:s.names], own: own, into: into}
	in := spanReader{decoder: decoder{rest: l.bytes(s.body)}, names: &into.from, time: l.Time, most: math.MaxUint64}
	in.span(&into.Span, last)
	into.from = laidNames{}
	if err := in.end(); err != nil {
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

// laidNames are the names that a span can use. It decodes only those blocks that are used.
type laidNames struct {
	l     *Layout
	names []laidName
	own   bool
	into  *Reading
}

// state does nothing: the layout has the ids.
func (n *laidNames) state([]byte) {}

// local returns the id of the content that a usage names by its distance. Of a block without a stated id, the block is decoded.
func (n *laidNames) local(usage int, back uint64) (content.ID, error) {
	name, err := n.at(back)
	switch {
	case err != nil:
		return content.ID{}, err
	case name.isID():
		return n.l.id(name), nil
	}
	block := n.into.Block(usage)
	err = n.l.block(block, name)
	if n.own {
		block.Body = bytes.Clone(block.Body)
	}
	return block.ID, err
}

func (n *laidNames) aside(back uint64) (content.ID, error) {
	name, err := n.at(back)
	switch {
	case err != nil:
		return content.ID{}, err
	case name.isID():
		return n.l.id(name), nil
	}
	var block Block
	err = n.l.block(&block, name)
	return block.ID, err
}

func (n *laidNames) at(back uint64) (laidName, error) {
	if back >= uint64(len(n.names)) {
		return laidName{}, errNotNamed
	}
	return n.names[len(n.names)-1-int(back)], nil
}

func (l *Layout) id(name laidName) content.ID { return content.ID(l.payload[name.start:]) }

func (l *Layout) block(b *Block, name laidName) error {
	c := decoder{rest: l.bytes(name.extent)}
	c.block(b)
	return c.end()
}
