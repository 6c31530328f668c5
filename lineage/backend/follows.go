package backend

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// Follows yields the spans directly after a span, in any thread. For the zero span it yields the
// first span of each history.
func Follows(ctx context.Context, from Reader, at structure.SpanRef) iter.Seq2[structure.SpanRef, error] {
	return func(yield func(structure.SpanRef, error) bool) {
		if !at.IsZero() {
			last, err := from.Last(ctx, at.Run)
			if err != nil {
				yield(structure.SpanRef{}, err)
				return
			}
			next := structure.SpanRef{Run: at.Run, Seq: at.Seq + 1}
			if last.Seq > at.Seq && !yield(next, nil) {
				return
			}
		}
		for run, err := range from.ForksAt(ctx, at) {
			first := structure.SpanRef{Run: run.ID, Seq: 1}
			if err == nil {
				var last structure.SpanRef
				if last, err = from.Last(ctx, run.ID); err == nil && last.IsZero() {
					continue // still empty
				}
			}
			if !yield(first, err) || err != nil {
				return
			}
		}
	}
}
