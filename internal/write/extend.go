package write

import (
	"context"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// InsertionPoint is where new spans are added to a history.
type InsertionPoint struct {
	// After is the parent of the first new span, zero for none.
	After structure.SpanRef
	// Home is the thread that owns the new spans.
	Home structure.Home
	// Fresh starts a new run even if the run of After ends there.
	Fresh bool
	// Set is the span set that the first new span is an alternative of, zero for none.
	Set structure.SpanSetID
}

// After returns the insertion point after a span. New spans extend the run of the span if it ends there and belongs to
// the home; otherwise they start a run.
func After(ctx context.Context, from backend.Reader, at structure.SpanRef, home structure.Home) (InsertionPoint, error) {
	p := InsertionPoint{After: at, Home: home, Fresh: true}
	if at.IsZero() {
		return p, nil
	}
	run, err := from.Run(ctx, at.Run)
	if err != nil || run.Home != home {
		return p, err
	}
	last, err := from.Last(ctx, at.Run)
	p.Fresh = last != at
	return p, err
}

// Extend adds a span for each step and returns their addresses. The spans extend the run of the insertion point or
// start a new one. The engine refuses the commit if the run does not end there. content has the new blocks, in
// the order in which the usages name them. Each block is placed just before the span that uses it, which is
// compact and keeps the two close for readers.
func (b *Batch) Extend(p InsertionPoint, content []*structure.Block, steps [][]structure.Usage) []structure.SpanRef {
	b.commit.Records = slices.Grow(b.commit.Records, len(content)+len(steps)+2)
	at := p.After
	if p.Fresh || at.IsZero() {
		at = structure.SpanRef{Run: b.NewRun(structure.RunID{}, at, p.Home)}
	}
	b.growSpans(len(steps))
	refs := make([]structure.SpanRef, len(steps))
	for i, usages := range steps {
		at.Seq++
		for k := range usages {
			for u := &usages[k]; len(content) > 0 && u.Names(content[0].ID); content = content[1:] {
				b.add(content[0])
			}
		}
		set := structure.SpanSetID{}
		if i == 0 {
			set = p.Set
		}
		b.Span(at, set, usages)
		refs[i] = at
	}
	return refs
}

// NewRun adds a run after a span, zero for none, and returns its id. A zero id is replaced by a new one.
func (b *Batch) NewRun(id structure.RunID, after structure.SpanRef, home structure.Home) structure.RunID {
	if id.IsZero() {
		id = structure.NewIDAt[structure.RunID](b.commit.Time)
	}
	run := &b.run
	if !run.ID.IsZero() {
		run = new(structure.Run)
	}
	*run = structure.Run{ID: id, Parent: after, Home: home}
	b.add(run)
	return id
}

// Span adds the span at an address. If set is not zero, the span is an alternative of that set.
func (b *Batch) Span(at structure.SpanRef, set structure.SpanSetID, usages []structure.Usage) {
	b.growSpans(1)
	b.spans = append(b.spans, structure.Span{Ref: at, Set: set, Usages: usages})
	b.add(&b.spans[len(b.spans)-1])
}

// growSpans makes room for n spans. It does not move earlier spans, because records point to them.
func (b *Batch) growSpans(n int) {
	if cap(b.spans)-len(b.spans) < n {
		b.spans = make([]structure.Span, 0, max(n, min(2*cap(b.spans), mostKept)))
	}
}

// Point advances the head of a context to a span.
func (b *Batch) Point(id structure.ContextID, at structure.SpanRef) {
	tip := &b.tip
	if !tip.Context.IsZero() {
		tip = new(structure.Tip)
	}
	*tip = structure.Tip{Context: id, Span: at}
	b.add(tip)
}

// Move sets the head of a context to any span, and adds the move to its reflog.
func (b *Batch) Move(id structure.ContextID, from, to structure.SpanRef, reason string) {
	b.Point(id, to)
	b.Log(id, from, to, reason, b.Time())
}

// Log adds a move to the reflog of a context.
func (b *Batch) Log(id structure.ContextID, from, to structure.SpanRef, reason string, at time.Time) {
	b.add(&structure.Reflog{Context: id, From: from, To: to, Reason: reason, At: at})
}
