package lineage

import (
	"context"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// ReplaceAfter makes the history go on with items after a span of it, each as a
// span of its own, in place of what follows there; the zero span replaces all of
// it. It is one change: unless the context stands at tip nothing is done and the
// error matches ErrTipMoved. Where it stood is kept in its reflog under the reason.
func (c *Context) ReplaceAfter(ctx context.Context, tip, after SpanRef, reason string, items ...Item) ([]SpanRef, error) {
	if on, err := structure.IsAncestor(after, tip, c.store.runs(ctx)); err != nil {
		return nil, err
	} else if !on {
		return nil, subjectError("span", after.String(), ErrInvalid, "it is not on the history that ends at "+tip.String())
	}
	defer c.store.writer.Lock(c.id).Unlock()
	var m material
	var spans []SpanRef
	err := c.store.change(ctx, func(b *write.Batch, t write.Try) error {
		if err := m.prepare(ctx, c.store, items, false, b, t); err != nil {
			return err
		}
		state, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		if state.Tip != tip {
			return &TipError{Context: c.id, Expected: tip, Actual: state.Tip}
		}
		switch {
		case len(items) > 0:
			home, own, err := c.store.home(ctx, &state.Context)
			if err != nil {
				return err
			}
			b.Expect(c.id, tip)
			spans = goOnFrom(b, &state.Context, after, home, m.content, m.steps, t.Fresh || !own || after != tip)
			b.Log(c.id, tip, spans[len(spans)-1], reason, b.Time())
		case after != tip:
			move(b, c.id, tip, after, reason)
		}
		return nil
	})
	if err != nil {
		return nil, takenSourceID(err, m.steps)
	}
	return spans, nil
}
