package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/write"
)

// Alternatives creates several continuations of the context, such as answers of several models, one for each of the
// overrides. They can be extended like any other context, in any order and concurrently, and have the same
// ContextInfo.Set. The context itself does not move until Choose.
func (c *Context) Alternatives(ctx context.Context, each ...Overrides) ([]*Context, error) {
	if len(each) == 0 {
		return nil, fmt.Errorf("alternatives: no overrides given: %w", ErrInvalid)
	}
	for i := range each {
		if err := checkSettings(&each[i], nil); err != nil {
			return nil, err
		}
	}
	var offered []*Context
	err := c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		state, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		set := b.SpanSet(state.Tip, len(each))
		offered = nil
		for _, o := range each {
			fork := forked(&state.Context, &ForkOptions{Overrides: o})
			fork.Set = set
			offered = append(offered, &Context{store: c.store, id: b.NewContext(fork).ID})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return offered, nil
}

// Choose moves the context to the tip of one of its alternatives. The others remain and can be chosen later. If the
// context is still where the alternatives start, choosing counts as extending it, and Undo does not revert it.
// Otherwise it is a move, which the reflog records.
func (c *Context) Choose(ctx context.Context, alternative *Context) error {
	if err := c.store.sameStore(alternative); err != nil {
		return err
	}
	defer c.store.writer.Lock(c.id).Unlock()
	return c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		state, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		chosen, err := c.store.engine.Context(ctx, alternative.id)
		if err != nil {
			return err
		}
		switch {
		case chosen.Parent != c.id || chosen.Set.IsZero():
			return subjectError("context", alternative.id.String(), ErrInvalid, "it is not an alternative of context "+c.id.String())
		case chosen.Tip == chosen.Base:
			return subjectError("context", alternative.id.String(), ErrInvalid, "the alternative is still empty")
		case chosen.Tip == state.Tip:
			return nil
		case state.Tip == chosen.Base: // straight forward, so there is nothing to undo
			b.Expect(c.id, state.Tip)
			b.Point(c.id, chosen.Tip)
		default:
			move(b, c.id, state.Tip, chosen.Tip, "choose")
		}
		b.Expect(alternative.id, chosen.Tip)
		return nil
	})
}
