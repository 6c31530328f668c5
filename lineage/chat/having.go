package chat

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// WithMessage yields the chats of On(store) that have a message with an id, in no order. Several may.
func WithMessage(ctx context.Context, store *lineage.Store, id string) iter.Seq2[Chat, error] {
	return func(yield func(Chat, error) bool) {
		s := latest(store)
		foreign, known, err := s.findForeign(ctx, id)
		if err != nil || known {
			s.yieldChat(ctx, foreign.Home.Thread, err, yield)
			return
		}
		var last structure.ThreadID
		for found, err := range s.from.Find(ctx, id, structure.ThreadID{}, backend.Found{}) {
			if err == nil && (found.Home.Thread.IsZero() || found.Home.Thread == last) {
				continue // it is of no chat, or an earlier version
			}
			last = found.Home.Thread
			if !s.yieldChat(ctx, last, err, yield) {
				return
			}
		}
	}
}

// WithBranch yields the chat of On(store) that has a branch with an id, or none.
func WithBranch(ctx context.Context, store *lineage.Store, id string) iter.Seq2[Chat, error] {
	return func(yield func(Chat, error) bool) {
		s := latest(store)
		b, _, err := s.branchWith(ctx, id)
		if isNotFound(err) {
			return
		}
		var thread structure.ThreadID
		if err == nil {
			thread = b.Thread
		}
		s.yieldChat(ctx, thread, err, yield)
	}
}

// yieldChat yields the chat that a thread is, unless it was deleted, or an error. It reports whether to go on.
func (s *state) yieldChat(ctx context.Context, id structure.ThreadID, err error, yield func(Chat, error) bool) bool {
	var c Chat
	if err == nil {
		var t *structure.Thread
		if t, err = s.from.Thread(ctx, id); err == nil {
			c, err = s.chatOf(ctx, t)
		}
		if isNotFound(err) {
			return true
		}
	}
	return yield(c, err) && err == nil
}
