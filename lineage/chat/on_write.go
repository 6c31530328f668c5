package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

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

// placing is the adding of messages, tried until nobody is in the way.
type placing struct {
	messages []Message
	// moment is when a message was made, by what it says of that.
	moment func(millis int64) time.Time
	// replaces, where not nil, has the earlier version of each message that has one.
	replaces []*version
	// freshRun begins a run even if the one at hand could go on.
	freshRun bool
	made     *material
	stored   int // how often
}

// mostStored is how often large bodies are stored that collections take before they
// are used.
const mostStored = 5

// replaced returns the earlier version of a message, nil if it has none.
func (p *placing) replaced(i int) *version {
	if p.replaces == nil {
		return nil
	}
	return p.replaces[i]
}

// material returns what the messages are made of, which is made when it is first
// wanted.
func (s *onStore) material(ctx context.Context, p *placing) (_ *material, err error) {
	if p.made == nil {
		p.stored++
		p.made, err = s.prepare(ctx, p)
	}
	return p.made, err
}

// again reports whether to try again after an error, with everything looked at anew.
func (p *placing) again(err error) bool {
	switch {
	case isOccupied(err) && !p.freshRun:
		p.freshRun = true
		return true
	case isCollected(err) && p.stored < mostStored:
		p.made = nil
		return true
	}
	return isRace(err) || isTipMoved(err)
}

// prepare makes the material. It stores what is too large for a commit on the way.
func (s *onStore) prepare(ctx context.Context, p *placing) (*material, error) {
	w := &material{usages: make([]structure.Usage, len(p.messages))}
	offered := make(map[content.ID]content.BlockOrigin)
	for i := range p.messages {
		m, u, was := &p.messages[i], &w.usages[i], p.replaced(i)
		if was != nil && was.same {
			*u = was.usage
			u.Lookup = 0
			continue
		}
		*u = structure.Usage{Kind: structure.MessageUsage, Role: m.Name, SourceID: m.ID, CreatedAt: p.moment(m.CreatedAt)}
		if m.Type != TypeMessage {
			u.Metadata, _ = json.Marshal(kind{m.Type}) // a string always marshals
		}
		origin := content.BlockOrigin{Kind: content.OriginOfRole(m.Name)}
		if was != nil {
			origin.ParentID = was.usage.Content
		}
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
}

// grown is what adds messages: the records, the last span, the tip that the strand must
// still have which is continued, if one is, and what the ids must still lead to.
type grown struct {
	records []structure.Record
	last    structure.SpanRef
	tips    []backend.Expect
	sources []backend.ExpectSource
}

// grow returns what adds messages one after another. It continues the strand that it
// starts in; whether it may, because it is at its end, the engine tells when it
// refuses.
func (s *onStore) grow(ctx context.Context, g growth, p *placing) (*grown, error) {
	w, err := s.material(ctx, p)
	if err != nil {
		return nil, err
	}
	var tips []backend.Expect
	fresh := p.freshRun || g.at.IsZero()
	if !fresh {
		in, err := s.strand(ctx, g.at.Run)
		if err != nil {
			return nil, err
		}
		if fresh = in.thread != g.thread || !in.has(g.at); !fresh {
			tips = []backend.Expect{{Context: strandID(g.at.Run), Tip: in.last}}
		}
	}
	records, at := append(make([]structure.Record, 0, len(w.blocks)+len(w.usages)+4), w.blocks...), g.at
	if fresh {
		t, err := s.engine.Thread(ctx, g.thread)
		if err != nil {
			return nil, err
		}
		run := &structure.Run{ID: structure.NewID[structure.RunID](), Parent: g.at, Home: t.Home()}
		records, at = append(records, run), structure.SpanRef{Run: run.ID}
	}
	var sources []backend.ExpectSource
	for i, u := range w.usages {
		at.Seq++
		var leads backend.ExpectSource
		if u.Lookup, leads, err = s.version(ctx, g.thread, u.SourceID, p.replaced(i)); err != nil {
			return nil, err
		}
		sources = append(sources, leads)
		records = append(records, &structure.Span{Ref: at, Usages: []structure.Usage{u}})
	}
	if fresh {
		first := structure.SpanRef{Run: at.Run, Seq: 1}
		records = append(records, &structure.Context{ID: strandID(at.Run), Thread: g.thread, Base: first, Tip: at, CreatedAt: now()})
	}
	records = append(records, &structure.Tip{Context: strandID(at.Run), Span: at}) // the chat was updated
	return &grown{records: records, last: at, tips: tips, sources: sources}, nil
}

// version returns the version of its id that a message becomes in a thread, and what the
// id leads to before: to no message of a chat, but for the one that is replaced. One that
// is there, which its caller has found not to be, was added since: that is errAddedSince.
func (s *onStore) version(ctx context.Context, thread structure.ThreadID, id string, was *version) (uint64, backend.ExpectSource, error) {
	number, leads := uint64(1), backend.ExpectSource{SourceID: id}
	for found, err := range s.engine.Find(ctx, id, structure.ThreadID{}, backend.Found{}) {
		if err != nil {
			return 0, leads, err
		}
		in, err := s.strand(ctx, found.Span.Run)
		if err == nil && in.has(found.Span) && (was == nil || found.Span != was.at) {
			err = errAddedSince
		}
		if err != nil {
			return 0, leads, err
		}
		leads.Spans = append(leads.Spans, found.Span)
		if found.Home.Thread == thread {
			number = max(number, found.Lookup+1)
		}
	}
	return number, leads, nil
}

// errAddedSince is a race lost before a commit was tried.
var errAddedSince = errors.New("a message with this id was added meanwhile")

// isRace reports whether a commit was refused because somebody else was faster,
// in a way that looking again resolves.
func isRace(err error) bool {
	return errors.Is(err, errAddedSince) || isAbout(err, "source id", ErrExists) || isAbout(err, "source id", lineage.ErrConflict) || isAbout(err, "context", ErrExists) ||
		isAbout(err, "context", ErrNotFound) || isAbout(err, "thread", ErrNotFound) || isAbout(err, "thread", lineage.ErrConflict)
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
	p := &placing{messages: []Message{m}, moment: moment}
	for {
		if err := s.addOnce(ctx, &m, p); !p.again(err) {
			return err
		}
	}
}

func (s *onStore) addOnce(ctx context.Context, m *Message, p *placing) error {
	t, err := s.threadNow(ctx, m.ChatID)
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
	parent, err := s.position(ctx, t.ID, m.ChatID, m.ParentID)
	if err != nil {
		return err
	}
	made, err := s.grow(ctx, growth{thread: t.ID, at: parent}, p)
	if err != nil {
		return err
	}
	o := asIs(t, made.tips...)
	o.Sources = made.sources
	if !tellTime(p.messages) {
		if made.records, err = s.touch(ctx, t, made.records, &o); err != nil {
			return err
		}
	}
	return s.apply(ctx, made.records, o)
}

// Append implements Store.
func (s *onStore) Append(ctx context.Context, r AppendRequest) (Ref, error) {
	r, err := r.Normal()
	if err != nil {
		return "", err
	}
	p := &placing{messages: r.Messages, moment: moment}
	for {
		err := s.appendOnce(ctx, &r, p)
		if err == nil {
			return Ref(r.Messages[len(r.Messages)-1].ID), nil
		}
		if !p.again(err) {
			return "", err
		}
	}
}

func (s *onStore) appendOnce(ctx context.Context, r *AppendRequest, p *placing) error {
	thread, err := s.mustThread(ctx, r.ChatID)
	if err != nil {
		return err
	}
	g := growth{thread: thread}
	if r.NewBranch != nil {
		return s.appendToNew(ctx, r, p, g)
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
	made, err := s.growNew(ctx, r, p, g)
	if err != nil {
		return err
	}
	o := backend.Options{Tips: append(made.tips, backend.Expect{Context: c.ID, Tip: c.Tip}), Sources: made.sources}
	if !tellTime(r.Messages) {
		t, err := s.engine.Thread(ctx, thread)
		if err == nil {
			made.records, err = s.touch(ctx, t, made.records, &o)
		}
		if err != nil {
			return err
		}
	}
	// The branch comes last: its context is at hand when the engine moves it.
	return s.apply(ctx, append(made.records, &structure.Tip{Context: c.ID, Span: made.last}), o)
}

// appendToNew appends to a branch that the same change makes.
func (s *onStore) appendToNew(ctx context.Context, r *AppendRequest, p *placing, g growth) error {
	return s.changeWith(ctx, g.thread, func(t *structure.Thread) ([]structure.Record, []backend.ExpectSource, error) {
		made := *r.NewBranch
		branch, c, err := s.newBranch(ctx, t, &made)
		if err != nil {
			return nil, nil, err
		}
		g.at = c.Tip
		added, err := s.growNew(ctx, r, p, g)
		if err != nil {
			return nil, nil, err
		}
		c.Tip = added.last
		return append(added.records, c, branch), added.sources, nil
	})
}

// growNew is grow for messages that must not be there.
func (s *onStore) growNew(ctx context.Context, r *AppendRequest, p *placing, g growth) (*grown, error) {
	for i := range r.Messages {
		id := r.Messages[i].ID
		at, ok, err := s.find(ctx, id)
		if err == nil && ok {
			err = &Error{Subject: SubjectMessage, ID: id, ChatID: r.ChatID, Err: ErrExists}
			if at.thread != g.thread {
				err = &Error{Subject: SubjectMessage, ID: id, ChatID: r.ChatID, Err: ErrOtherChat}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return s.grow(ctx, g, p)
}
