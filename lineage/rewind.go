package lineage

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// Move is a move of a context's tip, other than by extending.
type Move struct {
	From, To SpanRef
	Reason   string
	At       time.Time
}

// MoveTo points the context to another span: an earlier one of its history or any other in the
// store. The zero ref empties it. The reflog records the move with the reason, so that it can be
// undone. To replace the end of a history, use MoveTo and Extend in one Store.Update.
func (c *Context) MoveTo(ctx context.Context, to SpanRef, reason string) error {
	return c.move(ctx, reason, func(SpanRef) (SpanRef, error) { return to, nil })
}

// Undo reverts the last move in the reflog. The context then points to the tip before that move, without what was
// added since. Undo is itself a move, so undoing twice restores the tip. Extending, merging and choosing an
// alternative from its start are not moves. Use MoveTo to go back from there.
func (c *Context) Undo(ctx context.Context) error { return c.undo(ctx, nil) }

// UndoFrom is Undo for callers that must not revert what they have not seen: if the context is not
// at tip, nothing changes and the error matches ErrTipMoved.
func (c *Context) UndoFrom(ctx context.Context, tip SpanRef) error { return c.undo(ctx, &tip) }

func (c *Context) undo(ctx context.Context, expected *SpanRef) error {
	return c.move(ctx, "undo", func(tip SpanRef) (SpanRef, error) {
		if expected != nil && tip != *expected {
			return SpanRef{}, &TipError{Context: c.id, Expected: *expected, Actual: tip}
		}
		var last *structure.Reflog
		for r, err := range c.store.engine.Reflog(ctx, c.id) {
			if err != nil {
				return SpanRef{}, err
			}
			last = r
		}
		if last == nil {
			return SpanRef{}, subjectError("context", c.id.String(), ErrNotFound, "nothing to undo")
		}
		return last.From, nil
	})
}

// move moves the tip to the span that target returns for it.
func (c *Context) move(ctx context.Context, reason string, target func(tip SpanRef) (SpanRef, error)) error {
	defer c.store.writer.Lock(c.id).Unlock()
	return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		tip, err := c.Tip(ctx)
		if err != nil {
			return err
		}
		to, err := target(tip)
		if err == nil && to != tip {
			move(b, c.id, tip, to, reason)
		}
		return err
	})
}

// move moves a context from an expected tip.
func move(b *write.Batch, id ContextID, from, to SpanRef, reason string) {
	b.Expect(id, from)
	b.Move(id, from, to, reason)
}

// Reflog yields the moves of the context's tip, oldest first.
func (c *Context) Reflog(ctx context.Context) iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		for r, err := range c.store.engine.Reflog(ctx, c.id) {
			if err != nil {
				yield(Move{}, err)
				return
			}
			if !yield(Move{From: r.From, To: r.To, Reason: r.Reason, At: r.At}, nil) {
				return
			}
		}
	}
}
