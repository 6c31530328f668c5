package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// place is where a message stands: its span, and the thread whose message it is.
type place struct {
	ref    structure.SpanRef
	thread structure.ThreadID
}

// find returns the place of a message and whether there is one.
func (s *onStore) find(ctx context.Context, id string) (place, bool, error) {
	p, ok, err := s.findOwn(ctx, id)
	if err != nil || ok {
		return p, ok, err
	}
	return s.findForeign(ctx, id)
}

// findOwn is find for messages that were added here.
func (s *onStore) findOwn(ctx context.Context, id string) (place, bool, error) {
	for found, err := range s.engine.Find(ctx, id, structure.ThreadID{}, backend.Found{}) {
		if err != nil {
			return place{}, false, err
		}
		in, err := s.strand(ctx, found.Span.Run)
		if err != nil {
			return place{}, false, err
		}
		if in.has(found.Span) {
			return place{ref: found.Span, thread: in.thread}, true, nil
		}
	}
	return place{}, false, nil
}

// strand is a run as a part of a chat: its thread, zero if the run is a strand of
// none, and the last of its spans that is a message of the chat.
type strand struct {
	thread structure.ThreadID
	last   structure.SpanRef
}

// has reports whether a span of the run is a message of the chat.
func (s strand) has(at structure.SpanRef) bool { return at.Seq > 0 && at.Seq <= s.last.Seq }

func (s *onStore) strand(ctx context.Context, run structure.RunID) (strand, error) {
	return strandOf(ctx, s.engine, run)
}

func strandOf(ctx context.Context, from backend.Reader, run structure.RunID) (strand, error) {
	c, err := from.Context(ctx, strandID(run))
	if isNotFound(err) || err == nil && c.Base.Run != run {
		return strand{}, nil
	}
	if err != nil {
		return strand{}, err
	}
	return strand{thread: c.Thread, last: c.Tip}, nil
}

// reading turns spans into messages of one chat.
type reading struct {
	store  *lineage.Store
	from   backend.Reader
	thread structure.ThreadID
	chatID string
	// strands has the strand that each run met is.
	strands map[structure.RunID]strand
}

func (s *onStore) reading(ctx context.Context, thread structure.ThreadID) (*reading, error) {
	t, err := s.engine.Thread(ctx, thread)
	if err != nil {
		return nil, err
	}
	return newReading(s.store, s.engine, t), nil
}

func newReading(store *lineage.Store, from backend.Reader, t *structure.Thread) *reading {
	return &reading{store: store, from: from, thread: t.ID, chatID: chatID(t.SourceID, t.ID), strands: make(map[structure.RunID]strand)}
}

// id returns the id of a step and whether the message was added here.
func (r *reading) id(ctx context.Context, step *backend.Step) (id string, own bool, err error) {
	if source := step.Span.Usages[0].SourceID; source != "" {
		in, err := r.strand(ctx, step.Span.Ref.Run)
		if err != nil {
			return "", false, err
		}
		if in.thread == r.thread && in.has(step.Span.Ref) {
			return source, true, nil
		}
	}
	return foreignID(r.thread, step.Span.Ref), false, nil
}

// strand returns the strand that a run is.
func (r *reading) strand(ctx context.Context, run structure.RunID) (strand, error) {
	in, known := r.strands[run]
	if !known {
		var err error
		if in, err = strandOf(ctx, r.from, run); err != nil {
			return strand{}, err
		}
		r.strands[run] = in
	}
	return in, nil
}

// message returns the message that a step is.
func (r *reading) message(ctx context.Context, step *backend.Step, parent Ref) (Message, error) {
	id, own, err := r.id(ctx, step)
	if err != nil {
		return Message{}, err
	}
	u := &step.Span.Usages[0]
	m := Message{
		ID: id, ChatID: r.chatID, ParentID: parent, Name: roleOf(step), Type: TypeMessage, CreatedAt: u.CreatedAt.UnixMilli(),
	}
	if own {
		m.Type = typeOf(u)
		m.Data, err = r.body(ctx, step.Blocks[0])
	} else {
		m.Data, err = r.foreignData(ctx, step, id)
	}
	if err != nil {
		return Message{}, fmt.Errorf("message %q: %w", id, err)
	}
	return m, nil
}

// body returns a copy of a block's body, null if it was erased.
func (r *reading) body(ctx context.Context, b *structure.Block) (json.RawMessage, error) {
	switch {
	case b.Tree.Size != 0:
		body, err := r.store.Body(ctx, b.ID)
		if err == nil {
			var all []byte
			if all, err = io.ReadAll(body); err == nil {
				return all, nil
			}
		}
		if errors.Is(err, lineage.ErrErased) {
			return json.RawMessage("null"), nil // since it was looked up
		}
		return nil, err
	case b.Body == nil:
		return json.RawMessage("null"), nil
	}
	return bytes.Clone(b.Body), nil
}

// chain yields the window of the history that ends at a place as messages.
func (s *onStore) chain(ctx context.Context, p place, w structure.Window) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		r, err := s.reading(ctx, p.thread)
		if err != nil {
			yield(Message{}, err)
			return
		}
		parent := Ref("")
		for step, err := range s.engine.Path(ctx, p.ref, w, backend.PathOptions{Bodies: true}) {
			var m Message
			if err == nil {
				m, err = r.message(ctx, step, parent)
			}
			if !yield(m, err) || err != nil {
				return
			}
			parent = Ref(m.ID)
		}
	}
}

// idAt returns the id of the message at a span, none for the empty position.
func (s *onStore) idAt(ctx context.Context, thread structure.ThreadID, at structure.SpanRef) (Ref, error) {
	r := &reading{store: s.store, from: s.engine, thread: thread, strands: make(map[structure.RunID]strand)}
	return r.idAt(ctx, at)
}

func (r *reading) idAt(ctx context.Context, at structure.SpanRef) (Ref, error) {
	if at.IsZero() {
		return "", nil
	}
	id := ""
	for step, err := range r.from.Path(ctx, at, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil {
			return "", err
		}
		if id, _, err = r.id(ctx, step); err != nil {
			return "", err
		}
	}
	return Ref(id), nil
}

// Message implements Store.
func (s *onStore) Message(ctx context.Context, id string) (*Message, error) {
	p, ok, err := s.find(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	var last *Message
	for m, err := range s.chain(ctx, p, structure.Window{Last: 2}) {
		if isNotFound(err) {
			return nil, nil // the chat was deleted since
		}
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
		p, ok, err := s.find(ctx, id)
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
	p, ok, err := s.find(ctx, id)
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

func (s *onStore) activeHead(ctx context.Context, chatID string) (place, error) {
	thread, err := s.mustThread(ctx, chatID)
	if err != nil {
		return place{}, err
	}
	t, err := s.engine.Thread(ctx, thread)
	if err != nil || t.Active.IsZero() {
		return place{}, err
	}
	c, err := s.engine.Context(ctx, t.Active)
	if err != nil {
		return place{}, err
	}
	return place{ref: c.Tip, thread: thread}, nil
}

// HasChildren implements Store.
func (s *onStore) HasChildren(ctx context.Context, id string) (bool, error) {
	p, ok, err := s.find(ctx, id)
	if err != nil || !ok {
		return false, err
	}
	c, err := s.engine.Context(ctx, strandID(p.ref.Run))
	if err == nil && c.Base.Run == p.ref.Run && c.Thread == p.thread && c.Tip.Seq > p.ref.Seq {
		return true, nil // as for all but the ends of strands
	}
	if err != nil && !isNotFound(err) {
		return false, err
	}
	last, err := s.engine.Last(ctx, p.ref.Run)
	if err != nil {
		return false, err
	}
	goesOn := last.Seq > p.ref.Seq
	for run, err := range s.engine.ForksAt(ctx, p.ref) {
		if err != nil {
			return false, err
		}
		in, err := s.strand(ctx, run.ID)
		if err != nil || in.thread == p.thread && in.last.Seq > 0 {
			return err == nil, err
		}
		goesOn = true
	}
	if !goesOn {
		return false, nil
	}
	graph, err := s.reach(ctx, p.thread) // what follows may be of this chat or not
	return graph.continues(p.ref), err
}
