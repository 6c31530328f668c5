package access

import (
	"context"
	"errors"

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

// HasRun reports whether a run belongs to a thread in the scope.
func (s *Scope) HasRun(ctx context.Context, view backend.View, id structure.RunID) (bool, error) {
	if s.All() {
		return true, nil
	}
	t, err := backend.HomeOf(ctx, view, id)
	return t != nil && s.allows(t), err
}

// HasContent reports whether a content is in a message in the scope: one that was written for a thread in the scope
// or, unless thread is zero, one in the histories of that thread, which may be a fork that shares the message.
func (s *Scope) HasContent(ctx context.Context, view backend.View, id lineage.ContentID, thread lineage.ThreadID) (bool, error) {
	if s.All() {
		return true, nil
	}
	var reach backend.Reach
	if !thread.IsZero() {
		t, err := s.thread(ctx, view, thread)
		if t == nil || err != nil {
			return false, err
		}
		if reach, err = backend.ReachOf(ctx, view, t); err != nil {
			return false, err
		}
	}
	looked := make(map[structure.RunID]bool)
	uses := 0
	for use, err := range view.Where(ctx, id) {
		if err != nil {
			return false, err
		}
		if uses++; uses > MaxUses {
			break
		}
		if reach != nil {
			if reach.Has(use.Span) {
				return true, nil
			}
			continue
		}
		if looked[use.Span.Run] {
			continue
		}
		if has, err := s.HasRun(ctx, view, use.Span.Run); has || err != nil {
			return has, err
		}
		looked[use.Span.Run] = true
	}
	return false, nil
}

func (s *Scope) allows(t *structure.Thread) bool {
	return s.Allows(&lineage.ThreadInfo{UserID: t.UserID, Metadata: t.Metadata})
}
