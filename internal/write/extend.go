package write

import (
	"slices"

	"github.com/lineage-store/lineage/structure"
)

// Place is where a history goes on.
type Place struct {
	// After is the span that is followed, zero for none.
	After structure.SpanRef
	// Home is the thread whose messages the new spans are.
	Home structure.Home
	// Fresh begins a run, though that of After may end there.
	Fresh bool
	// Set is the set that the first of the new spans is an alternative in, else zero.
	Set structure.SpanSetID
}

// Extend adds a span for each step and returns their addresses. The spans continue the run
// of the place, or begin one; whether the run ends there the engine tells when it refuses.
// Content has the blocks that the commit brings, in the order in which the usages name
// them. A block stands just before the span that uses it: that takes few bytes, and is near
// when it is read.
func (b *Batch) Extend(p Place, content []*structure.Block, steps [][]structure.Usage) []structure.SpanRef {
	b.commit.Records = slices.Grow(b.commit.Records, len(content)+len(steps)+2)
	at := p.After
	if p.Fresh || at.IsZero() {
		at = structure.SpanRef{Run: b.newRun(at, p.Home)}
	}
	// What is pointed at must not move: records of an earlier call keep their memory.
	if cap(b.spans)-len(b.spans) < len(steps) {
		b.spans = make([]structure.Span, 0, len(steps))
	}
	refs := make([]structure.SpanRef, len(steps))
	for i, usages := range steps {
		at.Seq++
		b.spans = append(b.spans, structure.Span{Ref: at, Usages: usages})
		span := &b.spans[len(b.spans)-1]
		if i == 0 {
			span.Set = p.Set
		}
		for k := range usages {
			if len(content) > 0 && content[0].ID == usages[k].Content {
				b.add(content[0])
				content = content[1:]
			}
		}
		b.add(span)
		refs[i] = at
	}
	return refs
}

func (b *Batch) newRun(after structure.SpanRef, home structure.Home) structure.RunID {
	run := &b.run
	if !run.ID.IsZero() {
		run = new(structure.Run)
	}
	*run = structure.Run{ID: structure.NewIDAt[structure.RunID](b.commit.Time), Parent: after, Home: home}
	b.add(run)
	return run.ID
}

// Point makes a context stand at a span.
func (b *Batch) Point(id structure.ContextID, at structure.SpanRef) {
	tip := &b.tip
	if !tip.Context.IsZero() {
		tip = new(structure.Tip)
	}
	*tip = structure.Tip{Context: id, Span: at}
	b.add(tip)
}

// Move is Point for a move other than forward, which is kept in the context's reflog.
func (b *Batch) Move(id structure.ContextID, from, to structure.SpanRef, reason string) {
	b.Point(id, to)
	b.Log(id, from, to, reason)
}

// Log keeps a move in a context's reflog.
func (b *Batch) Log(id structure.ContextID, from, to structure.SpanRef, reason string) {
	b.add(&structure.Reflog{Context: id, From: from, To: to, Reason: reason, At: b.Time()})
}
