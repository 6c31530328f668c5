package lineage

import "context"

// Extend adds items to the history of the context, all or none, and returns their spans in order. Each item becomes a
// span (but see Together). The cost does not depend on the size of the history or store, nor on the number of forks.
// Only the first document revision makes a context read its history.
func (c *Context) Extend(ctx context.Context, items ...Item) ([]SpanRef, error) {
	return c.add(ctx, items, nil)
}

// ExtendFrom is like Extend, for callers that must not add after something they have not seen: if the
// context is not at tip, nothing is added and the error matches ErrTipMoved.
func (c *Context) ExtendFrom(ctx context.Context, tip SpanRef, items ...Item) ([]SpanRef, error) {
	return c.add(ctx, items, &tip)
}

func (c *Context) add(ctx context.Context, items []Item, expected *SpanRef) ([]SpanRef, error) {
	items = flat(items)
	switch {
	case len(items) == 0:
		return nil, nil
	case hasDocuments(items):
		return c.extendRevised(ctx, items, expected)
	}
	return c.extend(ctx, items, expected)
}
