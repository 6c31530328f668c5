package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/write"
)

// Alternatives offers several continuations of the context, such as the answers of several
// models: one for each of the overrides, which say how they differ. Each is a context that is
// extended like any other, in any order and concurrently, and all have the same ContextInfo.Set.
// The context itself stays where it is until one is chosen.
func (c *Context) Alternatives(ctx context.Context, each ...Overrides) ([]*Context, error) {
	if len(each) == 0 {
		return nil, fmt.Errorf("alternatives: none asked for: %w", ErrInvalid)
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

// Choose makes the context go on with an alternative: it then stands where that
// one stands. The others stay and can be chosen instead later. From where they were
// offered that is straight ahead, as if the context had been extended, and no move that
// Undo takes back. From elsewhere, such as another alternative, it is one: where the
// context stood is kept in its reflog.
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
			return subjectError("context", alternative.id.String(), ErrInvalid, "it is no alternative of context "+c.id.String())
		case chosen.Tip == chosen.Base:
			return subjectError("context", alternative.id.String(), ErrInvalid, "the alternative is still empty")
		case chosen.Tip == state.Tip:
			return nil
		case state.Tip == chosen.Base: // straight forward: nothing to undo
			b.Expect(c.id, state.Tip)
			b.Point(c.id, chosen.Tip)
		default:
			move(b, c.id, state.Tip, chosen.Tip, "choose")
		}
		b.Expect(alternative.id, chosen.Tip)
		return nil
	})
}
