package chat

import (
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

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
			if err := r.findLaterVersions(ctx, 2*(length-last)); err != nil {
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

// HasChildren implements Store.
func (s *onStore) HasChildren(ctx context.Context, chatID, id string) (bool, error) {
	r, at, err := s.readingOf(ctx, chatID, id)
	if err != nil || r == nil {
		return false, err
	}
	return s.followed(ctx, r, at)
}
