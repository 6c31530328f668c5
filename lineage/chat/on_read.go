package chat

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// place is the address of a message: its span, and the thread that it belongs to.
type place struct {
	ref    structure.SpanRef
	thread structure.ThreadID
	// foreign is set for one that foreignID names.
	foreign bool
}

// find returns the place of a message and whether there is one. Where messages of several
// threads have the id, it is that of the given thread, if that is one of them.
func (s *state) find(ctx context.Context, id string, in structure.ThreadID) (place, bool, error) {
	for _, thread := range []structure.ThreadID{in, {}} {
		found, err := backend.FindFirst(ctx, s.from, id, thread)
		if err == nil {
			return place{ref: found.Span, thread: found.Home.Thread}, true, nil
		}
		if !isNotFound(err) {
			return place{}, false, err
		}
		if in.IsZero() {
			break
		}
	}
	return s.findForeign(ctx, id)
}

// position returns the span of a message that a change to a chat refers to.
func (s *state) position(ctx context.Context, t *structure.Thread, id Ref) (structure.SpanRef, error) {
	if id == "" {
		return structure.SpanRef{}, nil
	}
	p, ok, err := s.find(ctx, string(id), t.ID)
	if err == nil && !ok {
		err = &Error{Subject: SubjectMessage, ID: string(id), ChatID: IDOfThread(t), Err: ErrNotFound}
	}
	if err == nil && p.thread != t.ID {
		err = &Error{Subject: SubjectMessage, ID: string(id), ChatID: IDOfThread(t), Err: ErrOtherChat}
	}
	return p.ref, err
}

// chain yields the window of the history that ends at a place as messages.
func (s *state) chain(ctx context.Context, p place, w structure.Window) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		t, err := s.from.Thread(ctx, p.thread)
		if err != nil {
			yield(Message{}, err)
			return
		}
		r := s.reading(t)
		parent := Ref("")
		for step, err := range s.from.Path(ctx, p.ref, w, backend.PathOptions{Bodies: true}) {
			var m Message
			if err == nil {
				m, err = r.Message(ctx, step, parent)
			}
			if !yield(m, err) || err != nil {
				return
			}
			parent = Ref(m.ID)
		}
	}
}

// Message implements Store.
func (s *onStore) Message(ctx context.Context, id string) (*Message, error) {
	p, ok, err := s.find(ctx, id, structure.ThreadID{})
	if err != nil || !ok {
		return nil, err
	}
	m, err := s.messageAt(ctx, p)
	return m, ignoreNotFound(err) // the chat may have been deleted since
}

// messageAt returns the message at a place.
func (s *state) messageAt(ctx context.Context, p place) (last *Message, err error) {
	for m, err := range s.chain(ctx, p, structure.Window{Last: 2}) {
		if err != nil {
			return nil, err
		}
		last = &m
	}
	return last, nil
}

// MessageChain implements Store.
func (s *onStore) MessageChain(ctx context.Context, id string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		p, ok, err := s.find(ctx, id, structure.ThreadID{})
		if err != nil {
			yield(Message{}, err)
		}
		if err == nil && ok {
			s.chain(ctx, p, structure.Window{})(yield)
		}
	}
}

// CountMessages implements Store.
func (s *onStore) CountMessages(ctx context.Context, id string) (int, error) {
	p, ok, err := s.find(ctx, id, structure.ThreadID{})
	if err != nil || !ok {
		return 0, err
	}
	n, err := s.store.Position(ctx, p.ref)
	return int(n), err
}

// Messages implements Store.
func (s *onStore) Messages(ctx context.Context, chatID string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		p, err := s.activeHead(ctx, chatID)
		if err != nil {
			yield(Message{}, err)
			return
		}
		if !p.ref.IsZero() {
			s.chain(ctx, p, structure.Window{})(yield)
		}
	}
}

func (s *state) activeHead(ctx context.Context, chatID string) (place, error) {
	t, err := s.mustThread(ctx, chatID)
	if err != nil || t.Active.IsZero() {
		return place{}, err
	}
	c, err := s.from.Context(ctx, t.Active)
	return place{ref: c.Tip, thread: t.ID}, err
}

// mostForks bounds how many runs that begin after a message are looked at one by one.
const mostForks = 1000

// HasChildren implements Store.
func (s *onStore) HasChildren(ctx context.Context, id string) (bool, error) {
	p, ok, err := s.find(ctx, id, structure.ThreadID{})
	if err != nil || !ok {
		return false, err
	}
	t, err := s.from.Thread(ctx, p.thread)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	r := s.reading(t)
	forks := 0
	for next, err := range s.store.Follows(ctx, p.ref) {
		if err != nil {
			return false, err
		}
		home, err := r.isHome(ctx, next.Run)
		if err != nil || home && t.Keeps {
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
	reach, err := backend.ReachOf(ctx, s.from, t)
	if err != nil || reach.Has(structure.SpanRef{Run: p.ref.Run, Seq: p.ref.Seq + 1}) {
		return err == nil, err
	}
	for _, e := range reach {
		if e.Run.Parent == p.ref {
			return true, nil
		}
	}
	return false, nil
}
