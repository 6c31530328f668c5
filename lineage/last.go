package lineage

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// LastEntries returns the last entries of the active contexts of threads, nil for those without messages and those that are
// gone. Where reads are round trips, it takes some for all of them.
func (s *Store) LastEntries(ctx context.Context, threads []ThreadID) ([]*Entry, error) {
	return backend.AtOnce(ctx, s.engine, func(state backend.Snapshot) ([]*Entry, error) {
		if ahead, ok := state.(backend.ThreadsAhead); ok {
			if err := ahead.ThreadsAhead(ctx, threads); err != nil {
				return nil, err
			}
		}
		var of []int // the threads of tips
		var tips []SpanRef
		for i, id := range threads {
			tip, err := activeTip(ctx, state, id)
			if err != nil {
				return nil, err
			}
			if !tip.IsZero() {
				of, tips = append(of, i), append(tips, tip)
			}
		}
		steps, err := backend.Steps(ctx, state, tips)
		if err != nil {
			return nil, err
		}
		entries, last := entryReader{from: state}, make([]*Entry, len(threads))
		if err := entries.reader().Ahead(ctx, steps); err != nil {
			return nil, err
		}
		for i, step := range steps {
			if last[of[i]], err = entries.entryWith(ctx, step, len(step.Span.Usages)-1); err != nil {
				return nil, err
			}
		}
		return last, nil
	})
}

// activeTip returns the tip of the active context of a thread, zero if one of them is gone.
func activeTip(ctx context.Context, state backend.Reader, id ThreadID) (SpanRef, error) {
	t, err := state.Thread(ctx, id)
	if err == nil {
		var c backend.Context
		if c, err = state.Context(ctx, t.Active); err == nil {
			return c.Tip, nil
		}
	}
	if isNotFound(err) {
		err = nil
	}
	return SpanRef{}, err
}
