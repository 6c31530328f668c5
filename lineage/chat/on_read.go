package chat

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// find returns where a message is and whether there is one. Where messages of several
// threads have the id, it is that of the given thread, if that is one of them.
func (s *state) find(ctx context.Context, id string, in structure.ThreadID) (backend.Found, bool, error) {
	found, err := backend.FindFirst(ctx, s.from, id, in)
	if isNotFound(err) && !in.IsZero() {
		found, err = backend.FindFirst(ctx, s.from, id, structure.ThreadID{})
	}
	if isNotFound(err) {
		return s.findForeign(ctx, id)
	}
	return found, err == nil, err
}

// known returns the span of a message of the chat and whether there is one. A message of another
// chat is ErrOtherChat.
func (c *change) known(ctx context.Context, id string) (structure.SpanRef, bool, error) {
	found, known, err := c.find(ctx, id, c.t.ID)
	if known && found.Home.Thread != c.t.ID {
		err = c.refuse(id, ErrOtherChat)
	}
	return found.Span, known, err
}

// position returns the span of a message that a change to the chat refers to.
func (c *change) position(ctx context.Context, id Ref) (structure.SpanRef, error) {
	if id == "" {
		return structure.SpanRef{}, nil
	}
	at, known, err := c.known(ctx, string(id))
	if err == nil && !known {
		err = c.refuse(string(id), ErrNotFound)
	}
	return at, err
}

// refuse returns an error about a message that the chat was given.
func (c *change) refuse(id string, err error) error {
	return &Error{Subject: SubjectMessage, ID: id, ChatID: IDOfThread(c.t), Err: err}
}

// readingOf returns a reader of the thread of a message, nil if there is none, and where the message is.
func (s *state) readingOf(ctx context.Context, id string) (*ThreadReader, structure.SpanRef, error) {
	found, known, err := s.find(ctx, id, structure.ThreadID{})
	if err != nil || !known {
		return nil, found.Span, err
	}
	t, err := s.from.Thread(ctx, found.Home.Thread)
	if err != nil {
		return nil, found.Span, ignoreNotFound(err) // deleted since
	}
	return s.reading(t), found.Span, nil
}

// Message implements Store.
func (s *onStore) Message(ctx context.Context, id string) (*Message, error) {
	r, at, err := s.readingOf(ctx, id)
	if err != nil || r == nil {
		return nil, err
	}
	return orNone(r.MessageAt(ctx, at))
}

// MessageChain implements Store.
func (s *onStore) MessageChain(ctx context.Context, id string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		r, at, err := s.readingOf(ctx, id)
		switch {
		case err != nil:
			yield(Message{}, err)
		case r != nil:
			r.chain(ctx, at, structure.Window{})(yield)
		}
	}
}

// CountMessages implements Store.
func (s *onStore) CountMessages(ctx context.Context, id string) (int, error) {
	found, known, err := s.find(ctx, id, structure.ThreadID{})
	if err != nil || !known {
		return 0, err
	}
	n, err := s.store.Position(ctx, found.Span)
	return int(n), err
}

// Messages implements Store.
func (s *onStore) Messages(ctx context.Context, chatID string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		var c backend.Context
		t, err := s.thread(ctx, chatID)
		if err == nil && !t.Active.IsZero() {
			c, err = s.from.Context(ctx, t.Active)
		}
		switch {
		case err != nil:
			yield(Message{}, err)
		case !c.Tip.IsZero():
			s.reading(t).chain(ctx, c.Tip, structure.Window{})(yield)
		}
	}
}

// mostForks bounds how many runs that begin after a message are looked at one by one.
const mostForks = 1000

// HasChildren implements Store.
func (s *onStore) HasChildren(ctx context.Context, id string) (bool, error) {
	r, at, err := s.readingOf(ctx, id)
	if err != nil || r == nil {
		return false, err
	}
	forks := 0
	for next, err := range s.store.Follows(ctx, at) {
		if err != nil {
			return false, err
		}
		home, err := r.isHome(ctx, next.Run)
		if err != nil || home && r.thread.Keeps {
			return err == nil, err
		}
		if forks++; forks == mostForks {
			break
		}
	}
	if forks == 0 {
		return false, nil
	}
	// What follows is the chat's if one of its contexts or checkpoints leads there.
	reach, err := backend.ReachOf(ctx, s.from, r.thread)
	for _, e := range reach {
		if e.Run.Parent == at || e.Run.ID == at.Run && e.Last > at.Seq {
			return true, nil
		}
	}
	return false, err
}
