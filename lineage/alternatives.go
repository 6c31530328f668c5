package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// AlternativeSet is a position at which several continuations are offered: the
// answers of several models, retries, edits. Each is a context that is extended
// like any other, in any order and concurrently.
type AlternativeSet struct {
	store *Store
	id    structure.SpanSetID
	// Position is the span that all of them follow.
	Position SpanRef
	// Offered are the contexts to fill, in the order asked for.
	Offered []*Context
}

// ID returns the set's id.
func (a *AlternativeSet) ID() structure.SpanSetID { return a.id }

// Alternatives offers continuations of the context: one for each of the
// overrides, which say how they differ (the model, say). The context itself stays
// where it is until one is chosen.
func (c *Context) Alternatives(ctx context.Context, each ...Overrides) (*AlternativeSet, error) {
	if len(each) == 0 {
		return nil, fmt.Errorf("alternatives: none asked for: %w", ErrInvalid)
	}
	for i := range each {
		if err := checkSettings(&each[i], nil); err != nil {
			return nil, err
		}
	}
	set := &AlternativeSet{store: c.store}
	err := c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		state, err := c.store.engine.Context(ctx, c.id)
		if err != nil {
			return err
		}
		set.id, set.Position, set.Offered = b.SpanSet(state.Tip, len(each)), state.Tip, nil
		for _, o := range each {
			fork := forked(&state.Context, &ForkOptions{Overrides: o})
			fork.Set = set.id
			set.Offered = append(set.Offered, &Context{store: c.store, id: b.NewContext(fork).ID})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return set, nil
}

// AlternativeSet returns a set by its id, with the contexts of this one's that
// fill it.
func (c *Context) AlternativeSet(ctx context.Context, id structure.SpanSetID) (*AlternativeSet, error) {
	r, err := c.store.engine.SpanSet(ctx, id)
	if err != nil {
		return nil, err
	}
	set := &AlternativeSet{store: c.store, id: id, Position: r.Parent}
	for child, err := range c.store.engine.Children(ctx, c.id, structure.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if child.Set == id {
			set.Offered = append(set.Offered, &Context{store: c.store, id: child.ID})
		}
	}
	return set, nil
}

// Filled returns the first span of each alternative that has one, in the order
// they were filled.
func (a *AlternativeSet) Filled(ctx context.Context) ([]SpanRef, error) {
	var refs []SpanRef
	for ref, err := range a.store.engine.Alternatives(ctx, a.id) {
		if err != nil {
			return nil, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
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
