package chat

import (
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// find returns the span of the message with an id in a thread, and whether there is one.
func (s *state) find(ctx context.Context, id string, in structure.ThreadID) (structure.SpanRef, bool, error) {
	if in.IsZero() {
		return structure.SpanRef{}, false, nil
	}
	found, err := backend.FindFirst(ctx, s.from, id, in)
	if isNotFound(err) {
		var known bool
		found, known, err = s.findForeign(ctx, id)
		if !known || found.Home.Thread != in {
			return structure.SpanRef{}, false, err
		}
	}
	return found.Span, err == nil, err
}

// messageIn returns the span of a message of a chat, and whether there is one. The thread of the chat may not exist.
// If only another chat has the id, the error is ErrOtherChat.
func (s *state) messageIn(ctx context.Context, chatID string, thread structure.ThreadID, id string) (structure.SpanRef, bool, error) {
	at, known, err := s.find(ctx, id, thread)
	if known || err != nil {
		return at, known, err
	}
	_, elsewhere, err := s.findForeign(ctx, id)
	if !elsewhere && err == nil {
		_, err = backend.FindFirst(ctx, s.from, id, structure.ThreadID{})
		elsewhere, err = err == nil, ignoreNotFound(err)
	}
	if elsewhere {
		err = &Error{Subject: SubjectMessage, ID: id, ChatID: chatID, Err: ErrOtherChat}
	}
	return structure.SpanRef{}, false, err
}

// position returns the span of a message that a change refers to.
func (c *change) position(ctx context.Context, id Ref) (structure.SpanRef, error) {
	if id == "" {
		return structure.SpanRef{}, nil
	}
	at, known, err := c.messageIn(ctx, IDOfThread(c.t), c.t.ID, string(id))
	if err == nil && !known {
		err = c.refuse(string(id), ErrNotFound)
	}
	return at, err
}

// refuse returns an error about a message that the caller passed.
func (c *change) refuse(id string, err error) error {
	return &Error{Subject: SubjectMessage, ID: id, ChatID: IDOfThread(c.t), Err: err}
}

// readingOf returns a reader of a chat and the span of one of its messages. The reader is nil if there is no such
// message.
func (s *state) readingOf(ctx context.Context, chatID, id string) (*ThreadReader, structure.SpanRef, error) {
	var in structure.ThreadID
	t, err := s.thread(ctx, chatID)
	if err == nil {
		in = t.ID
	} else if !isNotFound(err) {
		return nil, structure.SpanRef{}, err
	}
	at, known, err := s.messageIn(ctx, chatID, in, id)
	if err != nil || !known {
		return nil, structure.SpanRef{}, err
	}
	return s.reading(t), at, nil
}

// Message implements Store.
func (s *onStore) Message(ctx context.Context, chatID, id string) (*Message, error) {
	r, at, err := s.readingOf(ctx, chatID, id)
	if err != nil || r == nil {
		return nil, err
	}
	return orNone(r.MessageAt(ctx, at))
}

// MessageChain implements Store.
func (s *onStore) MessageChain(ctx context.Context, chatID, id string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		r, at, err := s.readingOf(ctx, chatID, id)
		switch {
		case err != nil:
			yield(Message{}, err)
		case r != nil:
			r.whole(ctx, at)(yield)
		}
	}
}

// Ancestors implements Store.
func (s *onStore) Ancestors(ctx context.Context, chatID, id string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		r, at, err := s.readingOf(ctx, chatID, id)
		if err != nil {
			yield(Message{}, err)
			return
		}
		if r == nil {
			return
		}
		length, err := s.store.Position(ctx, at)
		if err != nil {
			yield(Message{}, err)
			return
		}
		last := length
		for step := uint64(firstStep); last > 0; {
			if err := r.foresee(ctx, 2*(length-last)); err != nil {
				yield(Message{}, err)
				return
			}
			first := last - min(step, last) + 1
			// The previous message tells the parent of the first one.
			var part []Message
			size := 0
			for m, err := range r.chain(ctx, at, structure.Window{From: max(first-1, 1), To: last}) {
				if err != nil {
					yield(Message{}, err)
					return
				}
				part = append(part, m)
				for size += len(m.Data); len(part) > 1 && size > maxPart; part = part[1:] {
					size -= len(part[0].Data)
					part[0] = Message{} // it is read again
				}
			}
			if first > 1 && uint64(len(part)) > last-first+1 {
				part = part[1:]
				step = min(2*step, maxStep)
			} else {
				step = uint64(len(part))
			}
			last -= uint64(len(part))
			for _, m := range slices.Backward(part) {
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// Numbers of messages that are read at once on the path to the root, and the approximate maximum of their data in
// bytes. A single message may be larger.
const (
	firstStep = 4
	maxStep   = 512
	maxPart   = 1 << 20
)

// CountMessages implements Store.
func (s *onStore) CountMessages(ctx context.Context, chatID, id string) (int, error) {
	r, at, err := s.readingOf(ctx, chatID, id)
	if err != nil || r == nil {
		return 0, err
	}
	n, err := s.store.Position(ctx, at)
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
			s.reading(t).whole(ctx, c.Tip)(yield)
		}
	}
}

// mostForks limits the runs after a message that are examined one by one.
const mostForks = 1000

// HasChildren implements Store.
func (s *onStore) HasChildren(ctx context.Context, chatID, id string) (bool, error) {
	r, at, err := s.readingOf(ctx, chatID, id)
	if err != nil || r == nil {
		return false, err
	}
	return s.followed(ctx, r, at)
}

// followed reports whether a message of the chat comes after the one at a span.
func (s *state) followed(ctx context.Context, r *ThreadReader, at structure.SpanRef) (bool, error) {
	from, forks := s.from, 0
	if stage, inside := from.(*write.Stage); inside {
		from = staged{stage}
	}
	for next, err := range backend.Follows(ctx, from, at) {
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
	// A message that follows belongs to the chat if one of its contexts or checkpoints leads there.
	reach, err := backend.ReachOf(ctx, s.committed().from, r.thread)
	for _, e := range reach {
		if e.Run.Parent == at || e.Run.ID == at.Run && e.Last > at.Seq {
			return true, nil
		}
	}
	return false, err
}
