package lineage

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
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
	d := new(draft)
	var spans []SpanRef
	err := storing(func() (err error) {
		if err = d.take(ctx, c.store, items, false); err == nil {
			spans, err = c.replaceAfter(ctx, tip, after, reason, d)
		}
		return err
	}, items...)
	return spans, err
}

// replaceAfter is ReplaceAfter of a span that is on the history.
func (c *Context) replaceAfter(ctx context.Context, tip, after SpanRef, reason string, d *draft) ([]SpanRef, error) {
	defer c.store.lockContext(c.id).Unlock()
	var spans []SpanRef
	err := c.store.grow(ctx, false, func(freshRun bool) ([]structure.Record, []backend.Expect, error) {
		state, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return nil, nil, err
		}
		if state.Tip != tip {
			return nil, nil, &TipMovedError{&backend.TipError{Context: c.id, Expected: tip, Actual: state.Tip}}
		}
		home, own, err := c.store.home(ctx, &state.Context)
		if err != nil {
			return nil, nil, err
		}
		records, grown := c.store.replacement(d, &state.Context, home, after, reason, freshRun || !own || after != tip)
		spans = grown
		return records, []backend.Expect{{Context: c.id, Tip: tip}}, nil
	})
	if err != nil {
		return nil, takenSourceID(err, d.steps)
	}
	return spans, nil
}

// replacement returns the records that make a context go on with the usages of a
// draft after a span; none if that is what it does.
func (s *Store) replacement(d *draft, c *structure.Context, home structure.Home, after SpanRef, reason string, freshRun bool) ([]structure.Record, []SpanRef) {
	if len(d.steps) == 0 {
		if after == c.Tip {
			return nil, nil
		}
		return s.moved(c.ID, c.Tip, after, reason), nil
	}
	from := *c
	from.Tip = after
	spans := d.grow(&from, home, d.content, d.steps, freshRun)
	return append(d.records, &structure.Reflog{
		Context: c.ID, From: c.Tip, To: spans[len(spans)-1], Reason: reason, At: s.timestamp(),
	}), spans
}
