package chat

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Having is a chat that has a message. Page continues after it: see WithMessage.
type Having struct {
	Chat
	Page string
}

// WithMessage yields the chats of On(store) that have a message with an id. Several may. They come in an order of the
// store. If after is not empty, it continues after the chat with this page, even if that was deleted.
func WithMessage(ctx context.Context, store *lineage.Store, id, after string) iter.Seq2[Having, error] {
	return func(yield func(Having, error) bool) {
		s := latest(store)
		behind, err := parseHaving(after)
		if err != nil {
			yield(Having{}, err)
			return
		}
		has := func(in structure.Home, err error) bool {
			return s.yieldChat(ctx, in.Thread, err, func(c Chat, err error) bool {
				return yield(Having{c, pageOf(in)}, err)
			})
		}
		foreign, known, err := s.findForeign(ctx, id)
		if err != nil || known {
			if foreign.Home != behind.Home {
				has(foreign.Home, err)
			}
			return
		}
		last := behind.Home
		for found, err := range s.from.Find(ctx, id, structure.ThreadID{}, behind) {
			if err == nil && (found.Home.Thread.IsZero() || found.Home == last) {
				continue // it is of no chat, or an earlier version
			}
			last = found.Home
			if !has(last, err) {
				return
			}
		}
	}
}

// pageOf returns the page of a chat, for parseHaving.
func pageOf(h structure.Home) string {
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(h.Thread[:], h.Incarnation))
}

// parseHaving returns what is found last in the chat with a page. Of its spans the first one of the id is the last.
func parseHaving(page string) (backend.Found, error) {
	if page == "" {
		return backend.Found{}, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(page)
	var h structure.Home
	if err != nil || len(b) != len(h.Thread)+8 {
		return backend.Found{}, fmt.Errorf("page token %.80q: %w", page, ErrInvalid)
	}
	h.Incarnation = binary.BigEndian.Uint64(b[copy(h.Thread[:], b):])
	return backend.Found{Home: h, Lookup: 1}, nil
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
		var listed bool
		if t, err = s.from.Thread(ctx, id); err == nil {
			listed, err = s.isChat(ctx, id, t.SourceID)
		}
		if err == nil && !listed {
			return true
		}
		if err == nil {
			c, err = s.chatOf(ctx, t)
		}
		if isNotFound(err) {
			return true
		}
	}
	return yield(c, err) && err == nil
}
