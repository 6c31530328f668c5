package access

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// MaxUses limits the uses of a content that are checked to find one in the scope.
const MaxUses = 10_000

// HasThread reports whether a state has a thread that is in the scope.
func (s *Scope) HasThread(ctx context.Context, state backend.Reader, id lineage.ThreadID) (bool, error) {
	t, err := s.thread(ctx, state, id)
	return t != nil, err
}

// thread returns a thread of a state, nil if it is not there or not in the scope.
func (s *Scope) thread(ctx context.Context, state backend.Reader, id lineage.ThreadID) (*structure.Thread, error) {
	t, err := state.Thread(ctx, id)
	if errors.Is(err, lineage.ErrNotFound) || err == nil && !s.allows(t) {
		return nil, nil
	}
	return t, err
}

// HasRuns reports of each run whether it belongs to a thread in the scope. Where reads are round trips, it takes some for all of
// them.
func (s *Scope) HasRuns(ctx context.Context, view backend.View, ids []structure.RunID) (map[structure.RunID]bool, error) {
	if s.All() {
		has := make(map[structure.RunID]bool, len(ids))
		for _, id := range ids {
			has[id] = true
		}
		return has, nil
	}
	return backend.AtOnce(ctx, view, func(state backend.Snapshot) (map[structure.RunID]bool, error) {
		homes, err := backend.HomesOf(ctx, state, ids)
		has := make(map[structure.RunID]bool, len(ids))
		for id, t := range homes {
			has[id] = t != nil && s.allows(t)
		}
		return has, err
	})
}

// UsesAtOnce is the number of uses whose runs are checked at once.
const UsesAtOnce = 128

// HasContent reports whether a content is in a message in the scope: one that was written for a thread in the scope
// or, unless thread is zero, one in the histories of that thread, which may be a fork that shares the message.
func (s *Scope) HasContent(ctx context.Context, view backend.View, id lineage.ContentID, thread lineage.ThreadID) (bool, error) {
	if s.All() {
		return true, nil
	}
	uses := FirstUses(view.Where(ctx, id))
	if thread.IsZero() {
		return s.hasAny(ctx, view, uses)
	}
	t, err := s.thread(ctx, view, thread)
	if t == nil || err != nil {
		return false, err
	}
	reach, err := backend.ReachOf(ctx, view, t)
	if err != nil {
		return false, err
	}
	for use, err := range uses {
		if err != nil || reach.Has(use.Span) {
			return err == nil, err
		}
	}
	return false, nil
}

// hasAny reports whether one of some uses is in a message that was written for a thread in the scope.
func (s *Scope) hasAny(ctx context.Context, view backend.View, uses iter.Seq2[structure.UsageID, error]) (bool, error) {
	for runs, err := range pages.Of(runsOf(uses), UsesAtOnce) {
		if err != nil {
			return false, err
		}
		has, err := s.HasRuns(ctx, view, runs)
		if err != nil {
			return false, err
		}
		for _, in := range has {
			if in {
				return true, nil
			}
		}
	}
	return false, nil
}

// runsOf yields the runs of uses, each once.
func runsOf(uses iter.Seq2[structure.UsageID, error]) iter.Seq2[structure.RunID, error] {
	return func(yield func(structure.RunID, error) bool) {
		known := make(map[structure.RunID]bool)
		for use, err := range uses {
			run := use.Span.Run
			if err == nil && known[run] {
				continue
			}
			known[run] = true
			if !yield(run, err) {
				return
			}
		}
	}
}

// FirstUses yields the first MaxUses elements of a sequence.
func FirstUses[T any](all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for use, err := range all {
			if n++; err == nil && n > MaxUses || !yield(use, err) {
				return
			}
		}
	}
}

func (s *Scope) allows(t *structure.Thread) bool {
	return s.Allows(&lineage.ThreadInfo{UserID: t.UserID, Metadata: t.Metadata})
}
