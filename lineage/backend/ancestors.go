package backend

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// Ancestor is a context, or the remnant of one, from which overrides are inherited.
type Ancestor struct {
	structure.Remnant
	// Deleted is set for a remnant.
	Deleted bool
}

// Ancestors yields a context and its ancestors, nearest first. It ends where neither a context nor a remnant exists.
// The reader should be a snapshot, because there are several reads.
func Ancestors(ctx context.Context, r Reader, id structure.ContextID) iter.Seq2[Ancestor, error] {
	return func(yield func(Ancestor, error) bool) {
		seen := make(map[structure.ContextID]bool) // the store may be damaged
		for find := living; !id.IsZero() && !seen[id]; find = AncestorOf {
			a, err := find(ctx, r, id)
			if errors.Is(err, ErrNotFound) && len(seen) > 0 {
				return
			}
			seen[id] = true
			if !yield(a, err) || err != nil {
				return
			}
			id = a.Parent
		}
	}
}

// AncestorOf returns a context or its remnant. If there is neither, the error is ErrNotFound.
func AncestorOf(ctx context.Context, r Reader, id structure.ContextID) (Ancestor, error) {
	a, err := living(ctx, r, id)
	if !errors.Is(err, ErrNotFound) {
		return a, err
	}
	left, err := r.Remnant(ctx, id)
	if err != nil {
		return Ancestor{}, err
	}
	return Ancestor{Remnant: *left, Deleted: true}, nil
}

func living(ctx context.Context, r Reader, id structure.ContextID) (Ancestor, error) {
	c, err := r.Context(ctx, id)
	if err != nil {
		return Ancestor{}, err
	}
	return Ancestor{Remnant: *c.Remnant()}, nil
}
