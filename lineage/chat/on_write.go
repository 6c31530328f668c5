package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// kind is the metadata of a message's usage, which only messages of an unusual
// type have.
type kind struct {
	Type string `json:"type"`
}

func typeOf(u *structure.Usage) string {
	k := kind{Type: TypeMessage}
	if u.Metadata != nil && json.Unmarshal(u.Metadata, &k) != nil {
		return TypeMessage
	}
	return k.Type
}

// material is what messages are made of, ready to be placed.
type material struct {
	blocks []structure.Record
	usages []structure.Usage
}

// material stores what is too large for a commit on the way.
func (s *onStore) material(ctx context.Context, messages []Message) (*material, error) {
	w := &material{usages: make([]structure.Usage, len(messages))}
	offered := make(map[content.ID]content.Origin)
	for i := range messages {
		m, u := &messages[i], &w.usages[i]
		*u = structure.Usage{Kind: structure.MessageUsage, Role: m.Name, SourceID: m.ID, CreatedAt: moment(m.CreatedAt)}
		if m.Type != TypeMessage {
			u.Metadata, _ = json.Marshal(kind{m.Type}) // a string always marshals
		}
		origin := content.Origin{Kind: content.OriginOfRole(m.Name)}
		if len(m.Data) > content.InlineLimit {
			b, _, err := s.store.Put(ctx, bytes.NewReader(m.Data), lineage.BlockOptions{Type: content.TypeJSON, Origin: origin})
			if err != nil {
				return nil, err
			}
			u.Content, u.Type, u.Origin = b.ID, content.TypeJSON, &origin
			continue
		}
		u.Content = content.Sum(m.Data)
		if first, ok := offered[u.Content]; ok {
			if first != origin {
				u.Origin = &origin
			}
			continue
		}
		offered[u.Content] = origin
		w.blocks = append(w.blocks, &structure.Block{
			Block: content.Block{ID: u.Content, Type: content.TypeJSON, Size: int64(len(m.Data)), Origin: origin, CreatedAt: u.CreatedAt},
			Body:  m.Data,
		})
	}
	return w, nil
}

// growth is where messages are to be added.
type growth struct {
	thread structure.ThreadID
	at     structure.SpanRef
	// freshRun begins a run even if the one at hand could go on.
	freshRun bool
}

// grow returns the records that add messages one after another, and the last span.
// It continues the strand that it starts in; whether it may, because it is at its
// end, the engine tells when it refuses.
func (s *onStore) grow(ctx context.Context, g growth, w *material) ([]structure.Record, structure.SpanRef, error) {
	fresh := g.freshRun || g.at.IsZero()
	if !fresh {
		thread, err := s.strand(ctx, g.at.Run)
		if err != nil {
			return nil, structure.SpanRef{}, err
		}
		fresh = thread != g.thread
	}
	records, at := append(make([]structure.Record, 0, len(w.blocks)+len(w.usages)+4), w.blocks...), g.at
	if fresh {
		run := &structure.Run{ID: structure.NewID[structure.RunID](), Parent: g.at}
		records, at = append(records, run), structure.SpanRef{Run: run.ID}
	}
	var reused []structure.Record
	for _, u := range w.usages {
		at.Seq++
		free, err := s.aliasIsFree(ctx, u.SourceID)
		if err != nil {
			return nil, structure.SpanRef{}, err
		}
		if free {
			u.Alias = messageAlias(u.SourceID)
		} else {
			reused = append(reused, &structure.Context{ID: reuseID(u.SourceID), Thread: g.thread, Base: at, Tip: at, CreatedAt: now()})
		}
		records = append(records, &structure.Span{Ref: at, Usages: []structure.Usage{u}})
	}
	if fresh {
		first := structure.SpanRef{Run: at.Run, Seq: 1}
		records = append(records, &structure.Context{ID: strandID(at.Run), Thread: g.thread, Base: first, Tip: at, CreatedAt: now()})
	} else {
		records = append(records, &structure.Tip{Context: strandID(at.Run), Span: at})
	}
	return append(records, reused...), at, nil
}

// aliasIsFree reports whether no message, not even one of a deleted chat, has the
// alias of an id. A message that is there, which its caller has found not to be, was
// added since: that is errAddedSince, for an alias taken is no sign by itself that its
// message is gone.
func (s *onStore) aliasIsFree(ctx context.Context, id string) (bool, error) {
	ref, err := s.engine.Find(ctx, messageAlias(id))
	if isNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	thread, err := s.strand(ctx, ref.Run)
	if err == nil && !thread.IsZero() {
		err = errAddedSince
	}
	return false, err
}

// errAddedSince is a race lost before a commit was tried.
var errAddedSince = errors.New("a message with this id was added meanwhile")

// isRace reports whether a commit was refused because somebody else was faster,
// in a way that looking again resolves.
func isRace(err error) bool {
	return errors.Is(err, errAddedSince) || isAbout(err, "alias", ErrExists) || isAbout(err, "context", ErrExists) ||
		isAbout(err, "context", ErrNotFound) || isAbout(err, "thread", ErrNotFound)
}

// isOccupied reports whether a commit was refused because a run goes on elsewhere.
func isOccupied(err error) bool { return isAbout(err, "span", lineage.ErrConflict) }

// position returns the span of a message that a change to a chat refers to.
func (s *onStore) position(ctx context.Context, thread structure.ThreadID, chatID string, id Ref) (structure.SpanRef, error) {
	if id == "" {
		return structure.SpanRef{}, nil
	}
	p, ok, err := s.find(ctx, string(id))
	if err == nil && !ok {
		err = &Error{Subject: SubjectMessage, ID: string(id), ChatID: chatID, Err: ErrNotFound}
	}
	if err == nil && p.thread != thread {
		err = &Error{Subject: SubjectMessage, ID: string(id), ChatID: chatID, Err: ErrOtherChat}
	}
	return p.ref, err
}

// AddMessage implements Store.
func (s *onStore) AddMessage(ctx context.Context, m Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	var w *material
	for freshRun := false; ; {
		thread, err := s.mustThread(ctx, m.ChatID)
		if err != nil {
			return err
		}
		known, err := s.Message(ctx, m.ID)
		if err != nil {
			return err
		}
		if known != nil {
			return m.AgreesWith(*known)
		}
		parent, err := s.position(ctx, thread, m.ChatID, m.ParentID)
		if err != nil {
			return err
		}
		if w == nil {
			if w, err = s.material(ctx, []Message{m}); err != nil {
				return err
			}
		}
		records, _, err := s.grow(ctx, growth{thread: thread, at: parent, freshRun: freshRun}, w)
		if err == nil {
			err = s.apply(ctx, records, backend.Options{})
		}
		switch {
		case isOccupied(err) && !freshRun:
			freshRun = true
		case isRace(err):
		default:
			return err
		}
	}
}

// Append implements Store.
func (s *onStore) Append(ctx context.Context, r AppendRequest) (Ref, error) {
	r, err := r.Normal()
	if err != nil {
		return "", err
	}
	w, err := s.material(ctx, r.Messages)
	if err != nil {
		return "", err
	}
	for freshRun := false; ; {
		err := s.appendOnce(ctx, &r, w, freshRun)
		switch {
		case err == nil:
			return Ref(r.Messages[len(r.Messages)-1].ID), nil
		case isOccupied(err) && !freshRun:
			freshRun = true
		case isRace(err) || isTipMoved(err):
		default:
			return "", err
		}
	}
}

func (s *onStore) appendOnce(ctx context.Context, r *AppendRequest, w *material, freshRun bool) error {
	thread, err := s.mustThread(ctx, r.ChatID)
	if err != nil {
		return err
	}
	g := growth{thread: thread, freshRun: freshRun}
	if r.NewBranch != nil {
		return s.appendToNew(ctx, r, w, g)
	}
	c, err := s.branchContext(ctx, r.BranchID)
	if err != nil {
		return err
	}
	if c == nil {
		return &Error{Subject: SubjectBranch, ID: r.BranchID, ChatID: r.ChatID, Err: ErrNotFound}
	}
	if c.Thread != thread {
		return &Error{Subject: SubjectBranch, ID: r.BranchID, ChatID: r.ChatID, Err: ErrOtherChat}
	}
	if g.at, err = s.position(ctx, thread, r.ChatID, r.ExpectedHead); err != nil {
		return err
	}
	if g.at != c.Tip {
		actual, err := s.idAt(ctx, thread, c.Tip)
		if err != nil {
			return err
		}
		return &HeadError{BranchID: r.BranchID, Expected: r.ExpectedHead, Actual: actual}
	}
	records, last, err := s.growNew(ctx, r, w, g)
	if err != nil {
		return err
	}
	records = append(records, &structure.Tip{Context: c.ID, Span: last})
	return s.apply(ctx, records, backend.Options{Tips: []backend.Expect{{Context: c.ID, Tip: c.Tip}}})
}

// appendToNew appends to a branch that the same change makes.
func (s *onStore) appendToNew(ctx context.Context, r *AppendRequest, w *material, g growth) error {
	return s.change(ctx, g.thread, func(t *structure.Thread) ([]structure.Record, error) {
		branch, c, err := s.newBranch(ctx, t, r.NewBranch)
		if err != nil {
			return nil, err
		}
		g.at = c.Tip
		records, last, err := s.growNew(ctx, r, w, g)
		if err != nil {
			return nil, err
		}
		c.Tip = last
		return append(records, c, branch), nil
	})
}

// growNew is grow for messages that must not be there.
func (s *onStore) growNew(ctx context.Context, r *AppendRequest, w *material, g growth) ([]structure.Record, structure.SpanRef, error) {
	for i := range r.Messages {
		id := r.Messages[i].ID
		p, ok, err := s.find(ctx, id)
		if err == nil && ok {
			err = &Error{Subject: SubjectMessage, ID: id, ChatID: r.ChatID, Err: ErrExists}
			if p.thread != g.thread {
				err = &Error{Subject: SubjectMessage, ID: id, ChatID: r.ChatID, Err: ErrOtherChat}
			}
		}
		if err != nil {
			return nil, structure.SpanRef{}, err
		}
	}
	return s.grow(ctx, g, w)
}
