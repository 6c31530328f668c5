package chat

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Loading is a chat that comes from elsewhere as a whole, with its ids and times.
type Loading struct {
	Chat Chat
	// Messages are those of the chat, parents before their children. They are read
	// once. The faster, the longer the stretches in which each follows the one
	// before it.
	Messages    iter.Seq2[Message, error]
	Branches    []Branch
	Checkpoints []Checkpoint
	// Problem, when not nil, is told what cannot be loaded and why. Everything else
	// is.
	Problem func(err error)
}

// Loaded counts what a loading did.
type Loaded struct {
	// Messages is how many there were, New how many of them the store did not have as
	// they are.
	Messages, New int
	// Changed reports that anything of the chat changed in the store.
	Changed bool
}

// Load brings a chat into a store that it may have been brought into before: what
// is there stays, what is new is added, and what the chat says of itself, its
// branches and its checkpoints counts if it was updated later. Nothing changes if
// nothing is new. A branch moves to where the chat has it, unless the store's ends
// with messages of its own behind that.
//
// A message that has other content or another parent than when it was loaded before
// is loaded as a new version, and so is each message that follows it. Its id, the
// branches and the checkpoints then lead to the new version. The earlier one stays in
// the thread's history, where it goes by the id of its span. What was erased stays
// erased.
//
// What was loaded before an error stays; loading again goes on.
func Load(ctx context.Context, store *lineage.Store, l Loading) (Loaded, error) {
	s := &loading{from: &l, onStore: onStore{store: store, engine: store.Engine()}}
	if l.Problem == nil {
		l.Problem = func(error) {}
	}
	err := s.load(ctx)
	return s.done, err
}

// loadCommit is how many messages and bytes one commit takes, about: whoever reads
// one of them first checks all of its commit's frame.
const (
	loadCommit = 250
	loadBytes  = 64 << 10
)

type loading struct {
	onStore
	from   *Loading
	thread structure.ThreadID
	// incarnation tells the chat from one of the same id that is made when it was
	// deleted.
	incarnation uint64
	// later is set when the chat was updated later than what the store has of it.
	later bool
	// at is when the chat was updated, and underway the time of all that is loaded until
	// that is known of it.
	at, underway time.Time
	done         Loaded
	reading      *reading
	// listed are the messages that the chat has; behind is set after them, when
	// messages are added that only the store has.
	listed map[string]bool
	behind bool

	// pending follow one another; the first follows tip. replaces has the earlier
	// version of each that has one.
	pending  []Message
	replaces []*version
	bytes    int
	tip      structure.SpanRef
	last     string
	skipped  map[string]bool
}

func (s *loading) load(ctx context.Context) error {
	if err := s.from.Chat.Check(); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.reading = &reading{
		store: s.store, from: s.engine, thread: s.thread, chatID: s.from.Chat.ID, strands: make(map[structure.RunID]strand),
	}
	s.listed = make(map[string]bool)
	for m, err := range s.from.Messages {
		if err != nil {
			return err
		}
		s.done.Messages++
		s.listed[m.ID] = true
		if err := s.add(ctx, m); err != nil {
			return err
		}
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	if err := s.addBehindReplaced(ctx); err != nil {
		return err
	}
	return s.finish(ctx)
}

func (s *loading) commit(ctx context.Context, at time.Time, records []structure.Record, o backend.Options) error {
	if len(records) == 0 {
		return nil
	}
	o.Durability = backend.Normal
	_, err := s.engine.Apply(ctx, &structure.Commit{Time: at, Records: records}, o)
	s.done.Changed = s.done.Changed || err == nil
	return err
}

// begin makes the thread, if it is not there.
func (s *loading) begin(ctx context.Context) error {
	c := s.from.Chat
	// What commits change counts as changed then; before the last of them as changed
	// before that, or a loading that goes on would find what it loads no later.
	s.at = time.UnixMilli(c.UpdatedAt).UTC()
	s.underway = time.UnixMilli(max(c.UpdatedAt-1, 0)).UTC()
	for {
		t, err := s.threadNow(ctx, c.ID)
		if err == nil {
			known, err := s.onStore.Chat(ctx, c.ID) // whose messages count, too
			if err != nil {
				return err
			}
			if known == nil {
				continue // it was deleted just now
			}
			if known.UserID != c.UserID {
				return &Error{Subject: SubjectChat, ID: c.ID, Err: ErrOtherUser}
			}
			s.thread, s.incarnation, s.later = t.ID, t.Incarnation, c.UpdatedAt > known.UpdatedAt
			return nil
		}
		if !isNotFound(err) {
			return err
		}
		thread := &structure.Thread{
			ID: lineage.SourceThread(c.ID), SourceID: c.ID, UserID: c.UserID, Title: c.Title, Metadata: c.Metadata,
			CreatedAt: time.UnixMilli(c.CreatedAt).UTC(), UpdatedAt: s.underway, Incarnation: structure.NewIncarnation(),
		}
		err = s.commit(ctx, s.underway, []structure.Record{thread}, backend.Options{Threads: []backend.ExpectThread{{ID: thread.ID}}})
		if isAbout(err, "thread", ErrExists) {
			continue // somebody else made it
		}
		s.thread, s.incarnation, s.later = thread.ID, thread.Incarnation, true
		return err
	}
}

// chatNow returns the chat's thread as it is now. The chat may have been deleted
// meanwhile, and another made with its id.
func (s *loading) chatNow(ctx context.Context) (*structure.Thread, error) {
	t, err := s.engine.Thread(ctx, s.thread)
	if isNotFound(err) || err == nil && t.Incarnation != s.incarnation {
		return nil, noChat(s.from.Chat.ID)
	}
	return t, err
}

// skip leaves a message out, and so whatever follows it.
func (s *loading) skip(id string, err error) {
	if s.skipped == nil {
		s.skipped = make(map[string]bool)
	}
	s.skipped[id] = true
	s.from.Problem(err)
}

func (s *loading) add(ctx context.Context, m Message) error {
	m.ChatID = s.from.Chat.ID
	if err := m.Check(); err != nil {
		s.skip(m.ID, err)
		return nil
	}
	if s.skipped[string(m.ParentID)] {
		s.skip(m.ID, &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrInvalid, Detail: "its parent was left out"})
		return nil
	}
	p, known, err := s.find(ctx, m.ID)
	if err != nil {
		return err
	}
	if known && p.thread != s.thread {
		s.skip(m.ID, &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrOtherChat})
		return nil
	}
	if ok, err := s.follow(ctx, &m); err != nil || !ok {
		return err
	}
	var was *version
	if known {
		if was, err = s.version(ctx, p.ref, &m); err != nil {
			return err
		}
		if was.same && len(s.pending) == 0 && was.after == s.tip {
			s.tip, s.last = p.ref, m.ID
			return nil
		}
	}
	s.append(m, was)
	return nil
}

// append makes a message pending, which follows the last.
func (s *loading) append(m Message, was *version) {
	s.pending, s.replaces = append(s.pending, m), append(s.replaces, was)
	s.bytes += len(m.Data)
	s.last = m.ID
}

// follow makes the last message the parent of one that is to be added. It reports
// whether the message can be: its parent may be missing.
func (s *loading) follow(ctx context.Context, m *Message) (bool, error) {
	if len(s.pending) > 0 && (string(m.ParentID) != s.last || len(s.pending) >= loadCommit || s.bytes > loadBytes) {
		if err := s.flush(ctx); err != nil {
			return false, err
		}
	}
	if len(s.pending) > 0 || string(m.ParentID) == s.last {
		return true, nil
	}
	s.tip, s.last = structure.SpanRef{}, ""
	if m.ParentID == "" {
		return true, nil
	}
	p, ok, err := s.find(ctx, string(m.ParentID))
	if err != nil {
		return false, err
	}
	if !ok || p.thread != s.thread {
		s.skip(m.ID, &Error{Subject: SubjectMessage, ID: string(m.ParentID), ChatID: m.ChatID, Err: ErrNotFound, Detail: "parent of " + m.ID})
		return false, nil
	}
	s.tip, s.last = p.ref, string(m.ParentID)
	return true, nil
}

// flush adds the pending messages.
func (s *loading) flush(ctx context.Context) error {
	if len(s.pending) == 0 {
		return nil
	}
	p := &placing{messages: s.pending, replaces: s.replaces, moment: func(millis int64) time.Time { return time.UnixMilli(millis).UTC() }}
	for {
		err := s.flushOnce(ctx, p)
		switch {
		case err == nil:
			if !s.behind {
				s.done.New += len(s.pending)
			}
			s.pending, s.replaces, s.bytes = s.pending[:0], s.replaces[:0], 0
			return nil
		case isAbout(err, "thread", ErrNotFound):
			return noChat(s.from.Chat.ID)
		case isAbout(err, "thread", lineage.ErrConflict): // it is looked at again
		case isRace(err):
			return s.again(ctx)
		case !p.again(err):
			return err
		}
	}
}

func (s *loading) flushOnce(ctx context.Context, p *placing) error {
	t, err := s.chatNow(ctx)
	if err != nil {
		return err
	}
	made, err := s.grow(ctx, growth{thread: s.thread, at: s.tip}, p)
	if err != nil {
		return err
	}
	replacing, err := s.replacing(ctx, t)
	if err != nil {
		return err
	}
	records := append(made.records, replacing.records...)
	for _, r := range records {
		if c, ok := r.(*structure.Context); ok {
			c.CreatedAt = s.at
		}
	}
	o := asIs(t, append(made.tips, replacing.tips...)...)
	o.Sources = made.sources
	if err := s.commit(ctx, s.underway, records, o); err != nil {
		return err
	}
	s.tip = made.last
	clear(s.reading.strands)
	return nil
}

// again looks at the pending messages anew: somebody else was faster with some of them.
func (s *loading) again(ctx context.Context) error {
	pending := s.pending
	s.pending, s.replaces, s.bytes, s.tip, s.last = nil, nil, 0, structure.SpanRef{}, ""
	clear(s.reading.strands)
	if s.behind {
		return errOvertaken
	}
	for _, m := range pending {
		if err := s.add(ctx, m); err != nil {
			return err
		}
	}
	return s.flush(ctx)
}

// finish brings the chat itself, its branches and its checkpoints to where they are.
func (s *loading) finish(ctx context.Context) error {
	for {
		was, err := s.chatNow(ctx)
		if err != nil {
			return err
		}
		is := *was
		if err := s.forgetGone(ctx, &is); err != nil {
			return err
		}
		n, err := s.names(ctx, &is)
		if err != nil {
			return err
		}
		if s.later {
			is.Title, is.Metadata, is.UpdatedAt = s.from.Chat.Title, s.from.Chat.Metadata, s.at
		}
		if len(n.records) == 0 && sameThread(was, &is) {
			return nil
		}
		if sameThread(was, &is) {
			is.UpdatedAt = was.UpdatedAt.Add(time.Millisecond) // every state differs: see change
		}
		n.records = append(n.records, &is)
		err = s.commit(ctx, s.at, n.records, asIs(was, n.tips...))
		if !isAbout(err, "thread", lineage.ErrConflict) && !isTipMoved(err) {
			return err
		}
	}
}

func sameThread(a, b *structure.Thread) bool {
	return a.Title == b.Title && string(a.Metadata) == string(b.Metadata) && (a.Metadata == nil) == (b.Metadata == nil) &&
		a.Active == b.Active && a.UpdatedAt.Equal(b.UpdatedAt)
}

// naming is what is new of branches and checkpoints, and where the branches stand that
// it moves.
type naming struct {
	records []structure.Record
	tips    []backend.Expect
}

// isProblem reports whether an error is about one thing that cannot be loaded, and not
// about the store.
func isProblem(err error) bool {
	return errors.Is(err, ErrExists) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrOtherChat)
}

// names returns what is new of branches and checkpoints.
func (s *loading) names(ctx context.Context, t *structure.Thread) (*naming, error) {
	n := &naming{}
	clear(s.reading.strands)
	branches := s.from.Branches
	if t.Active.IsZero() && len(branches) == 0 {
		branches = []Branch{{Name: MainBranch, IsActive: true, CreatedAt: s.from.Chat.CreatedAt}}
	}
	active := t.Active
	for i := range branches {
		b := branches[i]
		b.ChatID = s.from.Chat.ID
		id, err := s.branch(ctx, t, b, n)
		if err != nil {
			if isProblem(err) {
				s.from.Problem(err)
				continue
			}
			return nil, err
		}
		if active.IsZero() || b.IsActive && s.later {
			active = id
		}
	}
	t.Active = active
	for _, k := range s.from.Checkpoints {
		k.ChatID = s.from.Chat.ID
		more, err := s.checkpoint(ctx, t, k)
		if err != nil {
			if isProblem(err) {
				s.from.Problem(err)
				continue
			}
			return nil, err
		}
		n.records = append(n.records, more...)
	}
	return n, s.moveReplaced(ctx, t, n)
}

// branch adds what brings a branch to where it is, and returns its context.
func (s *loading) branch(ctx context.Context, t *structure.Thread, b Branch, n *naming) (structure.ContextID, error) {
	if err := b.Check(); err != nil {
		return structure.ContextID{}, err
	}
	known, err := s.engine.Branch(ctx, t.ID, b.Name)
	if isNotFound(err) {
		b.IsActive = false // that is the caller's to say
		record, c, err := s.newBranch(ctx, t, &b)
		if err != nil {
			return structure.ContextID{}, err
		}
		n.records = append(n.records, c, record)
		return c.ID, nil
	}
	if err != nil {
		return structure.ContextID{}, err
	}
	c, err := s.engine.Context(ctx, known.Context)
	if err != nil {
		return structure.ContextID{}, err
	}
	head, err := s.position(ctx, t.ID, b.ChatID, b.HeadMessageID)
	if err != nil {
		return structure.ContextID{}, err
	}
	runs := s.runs(ctx)
	at, err := s.latest(ctx, c.Tip)
	if err != nil {
		return structure.ContextID{}, err
	}
	passed, err := structure.IsAncestor(head, at, runs)
	if err != nil {
		return structure.ContextID{}, err
	}
	if passed {
		last, err := s.reading.idAt(ctx, at)
		if err != nil {
			return structure.ContextID{}, err
		}
		if !s.listed[string(last)] {
			head = at // what follows is the store's own
		}
	}
	forward, err := structure.IsAncestor(c.Tip, head, runs)
	if err != nil {
		return structure.ContextID{}, err
	}
	if head != c.Tip {
		n.move(&c, head, forward, s.at)
	}
	return c.ID, nil
}

// move moves a branch.
func (n *naming) move(c *backend.Context, to structure.SpanRef, forward bool, at time.Time) {
	n.tips = append(n.tips, backend.Expect{Context: c.ID, Tip: c.Tip})
	n.records = append(n.records, &structure.Tip{Context: c.ID, Span: to})
	if !forward {
		n.records = append(n.records, &structure.Reflog{Context: c.ID, From: c.Tip, To: to, Reason: "load", At: at})
	}
}

// checkpoint returns the records that bring a checkpoint to where it is.
func (s *loading) checkpoint(ctx context.Context, t *structure.Thread, k Checkpoint) ([]structure.Record, error) {
	if err := k.Check(); err != nil {
		return nil, err
	}
	at, err := s.position(ctx, t.ID, k.ChatID, Ref(k.MessageID))
	if err != nil {
		return nil, err
	}
	if at.IsZero() {
		return nil, &Error{Subject: SubjectCheckpoint, ID: k.Name, ChatID: k.ChatID, Err: ErrInvalid, Detail: "no message"}
	}
	record := &structure.Checkpoint{Thread: t.ID, Name: k.Name, Span: at, CreatedAt: time.UnixMilli(k.CreatedAt).UTC()}
	known, err := s.engine.Checkpoint(ctx, t.ID, k.Name)
	if isNotFound(err) {
		return s.newCheckpoint(ctx, record, &k)
	}
	if err != nil {
		return nil, err
	}
	if known.Span == at && known.CreatedAt.Equal(record.CreatedAt) || known.CreatedAt.After(record.CreatedAt) {
		return nil, nil
	}
	record.ID = known.ID
	return []structure.Record{record}, nil
}
