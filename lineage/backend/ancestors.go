package backend

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// Ancestor is a context, or what is left of one, from which overrides are inherited.
type Ancestor struct {
	structure.Remnant
	// Deleted is set for a remnant.
	Deleted bool
}

// Ancestors yields a context and those that it was forked from, nearest first, as long as they exist
// or something is left of them. The reader should be a snapshot, because there are several reads.
func Ancestors(ctx context.Context, r Reader, id structure.ContextID) iter.Seq2[Ancestor, error] {
	return func(yield func(Ancestor, error) bool) {
		seen := make(map[structure.ContextID]bool) // an engine may be damaged
		for first := true; !id.IsZero() && !seen[id]; first = false {
			seen[id] = true
			a, err := ancestor(ctx, r, id, first)
			if errors.Is(err, ErrNotFound) && !first {
				return
			}
			if !yield(a, err) || err != nil {
				return
			}
			id = a.Parent
		}
	}
}

func ancestor(ctx context.Context, r Reader, id structure.ContextID, living bool) (Ancestor, error) {
	c, err := r.Context(ctx, id)
	if err == nil {
		return Ancestor{Remnant: *c.Remnant()}, nil
	}
	if living || !errors.Is(err, ErrNotFound) {
		return Ancestor{}, err
	}
	is, err := r.Remnant(ctx, id)
	if err != nil {
		return Ancestor{}, err
	}
	return Ancestor{*is, true}, nil
}
