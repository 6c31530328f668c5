package lineage

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// Move is a way that a context's tip moved other than forward.
type Move struct {
	From, To SpanRef
	Reason   string
	At       time.Time
}

// MoveTo makes the context stand at another span, such as an earlier one of its history, or
// any in the store; the zero ref empties it. Where it stood is kept in its reflog under the reason,
// so that the move can be undone. What replaces the end of a history is a move and an Extend, in one Store.Update.
func (c *Context) MoveTo(ctx context.Context, to SpanRef, reason string) error {
	return c.move(ctx, reason, func(SpanRef) (SpanRef, error) { return to, nil })
}

// Undo takes the last move in the reflog back: the context stands where it stood before
// that move, and what it was extended by since is no longer on its history. The undoing
// is itself such a move, so that undoing twice leads back. Going forward is no move and
// is not undone by itself, be it by extending, by a merge that appends or by choosing an
// alternative straight ahead: MoveTo goes back from there.
func (c *Context) Undo(ctx context.Context) error {
	return c.move(ctx, "undo", func(SpanRef) (SpanRef, error) {
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

// move changes the tip to what target returns for where it stands.
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

// move makes a context stand elsewhere than where it must stand.
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
