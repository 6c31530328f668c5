package chat

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Loading is a chat that comes from elsewhere as a whole, with its ids and times.
type Loading struct {
	Chat Chat
	// Messages are those of the chat, parents before their children. They are read
	// once.
	Messages    iter.Seq2[Message, error]
	Branches    []Branch
	Checkpoints []Checkpoint
	// Said, when not nil, returns what messages are made of where they come from, which is then
	// what is added. It returns nil for a message that is as its data say.
	Said func(ctx context.Context, messages []Message) ([]*Said, error)
	// Context, when not nil, makes the context of a branch that the store does not have, in the
	// transaction tx, and returns its id. For the zero id, the branch gets a new context.
	Context func(ctx context.Context, tx *lineage.Store, b Branch) (structure.ContextID, error)
	// Problem, when not nil, is called with everything that cannot be loaded, and the reason.
	// Everything else is.
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
// branches and its checkpoints counts if it was updated later, and its user if the
// store's has none. A chat of another user is ErrOtherUser. Nothing changes if
// nothing is new. A branch moves to where the chat has it, unless the store's ends
// with messages of its own after that.
//
// A message that has other content or another parent than when it was loaded before
// is loaded as a new version, and so is each message that follows it. Its id, the
// branches and the checkpoints then lead to the new version. The earlier one stays in
// the thread's history, where it goes by the id of its span. What was erased stays
// erased. All new versions come into force together.
//
// Everything loaded before an error stays; loading again continues.
func Load(ctx context.Context, store *lineage.Store, l Loading) (Loaded, error) {
	if l.Problem == nil {
		l.Problem = func(error) {}
	}
	if l.Said == nil {
		l.Said = func(_ context.Context, messages []Message) ([]*Said, error) { return make([]*Said, len(messages)), nil }
	}
	s := &loading{
		state: latest(store), from: l,
		listed: make(map[string]structure.SpanRef), skipped: make(map[string]bool), waiting: make(map[string]bool), isPending: make(map[string]bool),
	}
	err := s.load(ctx)
	return s.done, err
}

// loadCommit and loadBytes are about how many messages and bytes one commit takes: who reads
// one of them first checks all of its commit's frame.
const (
	loadCommit = 250
	loadBytes  = 64 << 10
)

type loading struct {
	state
	from Loading
	// home distinguishes the chat from one of the same id that is created when it was deleted.
	home structure.Home
	// later is set when the chat was updated later than what the store has of it.
	later bool
	// at is when the chat was updated, and underway the time of all that is loaded until
	// that is known of it.
	at, underway time.Time
	done         Loaded
	// listed are the messages that the chat has, by their ids, each with its span if the store has it as
	// it is.
	listed map[string]structure.SpanRef
	// versions are messages that the store has otherwise, and those that follow them:
	// they come into force together, at the end. Those without data only stand elsewhere.
	versions []Message
	waiting  map[string]bool // their ids

	// pending are new messages, of so many bytes.
	pending   []Message
	isPending map[string]bool // by their ids
	bytes     int
	skipped   map[string]bool
	// problems are those of new versions, branches and checkpoints.
	problems []error
}

func (s *loading) load(ctx context.Context) error {
	if err := s.from.Chat.Check(); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for m, err := range s.from.Messages {
		if err != nil {
			return err
		}
		s.done.Messages++
		s.listed[m.ID] = structure.SpanRef{}
		if err := s.add(ctx, m); err != nil {
			return err
		}
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	return s.finish(ctx)
}

// commit makes a commit of what fill does to the chat, at a time. It notes whether that is
// anything. The chat may have been deleted meanwhile, and another made with its id.
func (s *loading) commit(ctx context.Context, at time.Time, fill func(c *change) error) error {
	changed := false
	err := s.change(ctx, s.from.Chat.ID, func(c *change) error {
		if c.t.Home() != s.home {
			return noChat(s.from.Chat.ID)
		}
		c.stage().Load(at, backend.Normal)
		err := fill(c)
		changed = c.stage().Changes() > 0
		return err
	})
	s.done.Changed = s.done.Changed || err == nil && changed
	return err
}

// begin makes the thread, if it is not there.
func (s *loading) begin(ctx context.Context) error {
	c := s.from.Chat
	// What commits change counts as changed then; before the last of them as changed
	// before that, or a loading that goes on would find what it loads no later.
	s.at = time.UnixMilli(c.UpdatedAt).UTC()
	s.underway = time.UnixMilli(max(c.UpdatedAt-1, 0)).UTC()
	return s.update(ctx, func(in *state) error {
		in.stage().Load(s.underway, backend.Normal)
		t, err := in.thread(ctx, c.ID)
		s.done.Changed = isNotFound(err)
		if s.done.Changed {
			// Its branches come with the rest.
			_, err := write.Of(in.store).Make(ctx, func(b *write.Batch, _ write.Try) error {
				t = b.NewThread(write.Thread{
					SourceID: c.ID, UserID: c.UserID, Title: c.Title, Metadata: c.Metadata, Keeps: true, CreatedAt: time.UnixMilli(c.CreatedAt).UTC(),
				})
				return nil
			})
			s.home, s.later = t.Home(), true
			return err
		}
		if err != nil {
			return err
		}
		known, err := in.chatOf(ctx, t) // whose messages count, too
		if err != nil {
			return err
		}
		s.home, s.later = t.Home(), c.UpdatedAt > known.UpdatedAt
		return s.checkUser(t.UserID)
	})
}

// checkUser refuses to load into a chat of another user.
func (s *loading) checkUser(is string) error {
	user := cmp.Or(s.from.Chat.UserID, is)
	return ChatUpdate{UserID: &user}.CheckUser(s.from.Chat.ID, is)
}

// skip leaves a message out, and so those that follow it.
func (s *loading) skip(id string, err error) error {
	s.skipped[id] = true
	s.from.Problem(err)
	return nil
}

func (s *loading) add(ctx context.Context, m Message) error {
	m.ChatID = s.from.Chat.ID
	parent := string(m.ParentID)
	if err := m.Check(); err != nil {
		return s.skip(m.ID, err)
	}
	if s.skipped[parent] {
		return s.skip(m.ID, &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrInvalid, Detail: "its parent was left out"})
	}
	if s.isPending[m.ID] { // there are two of them
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	at, known, err := s.find(ctx, m.ID, s.home.Thread)
	if err != nil {
		return err
	}
	same := false
	if known {
		if same, err = s.same(ctx, &s.state, at, &m); err != nil {
			return err
		}
	}
	if known && m.ID == foreignID(s.home.Thread, at) {
		if !same {
			s.from.Problem(&Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: ErrExists, Detail: "with other content; without an id of its own it has no versions"})
		}
		return nil
	}
	moved := s.waiting[parent] || known && s.isPending[parent]
	if !moved && !s.isPending[parent] {
		after, ok, err := s.spanOf(ctx, parent)
		if err != nil {
			return err
		}
		if !ok {
			return s.skip(m.ID, &Error{Subject: SubjectMessage, ID: parent, ChatID: m.ChatID, Err: ErrNotFound, Detail: "parent of " + m.ID})
		}
		if known {
			was, err := before(ctx, s.state.from, at)
			if err != nil {
				return err
			}
			moved = was != after
		}
	}
	switch {
	case !known && !moved:
		s.pending, s.isPending[m.ID] = append(s.pending, m), true
		if s.bytes += len(m.Data); len(s.pending) >= loadCommit || s.bytes > loadBytes {
			return s.flush(ctx)
		}
	case same && !moved:
		s.listed[m.ID] = at
	case !s.waiting[m.ID]:
		if same {
			m.Data = nil
		}
		s.versions, s.waiting[m.ID] = append(s.versions, m), true
	}
	return nil
}

// spanOf returns the span of a message of the chat, and whether there is one. None has the empty position.
func (s *loading) spanOf(ctx context.Context, id string) (structure.SpanRef, bool, error) {
	if at := s.listed[id]; id == "" || !at.IsZero() {
		return at, true, nil
	}
	return s.find(ctx, id, s.home.Thread)
}

// same reports whether the message at a span says what another one does. What was erased
// stays so.
func (s *loading) same(ctx context.Context, in *state, at structure.SpanRef, m *Message) (bool, error) {
	step, err := in.step(ctx, at, backend.PathOptions{Bodies: true})
	if err != nil {
		return false, err
	}
	r := &ThreadReader{state: in, messages: form.NewReader(in.from)}
	known, err := r.tell(ctx, step, m.ID)
	known.ChatID, known.ParentID = m.ChatID, m.ParentID
	if u := &step.Span.Usages[0]; err == nil && !u.MetadataContent.IsZero() {
		var metadata []byte
		if metadata, err = r.messages.Metadata(ctx, u); metadata == nil {
			known.Type = m.Type // it was erased
		}
	}
	erased := string(known.Data) == "null" || slices.ContainsFunc(step.Blocks, (*structure.Block).Gone)
	if same := erased || m.Same(known); same || err != nil {
		return same, err
	}
	// Databases do not keep all data as they are.
	said, err := s.from.Said(ctx, []Message{*m})
	if err != nil || said[0] == nil {
		return false, err
	}
	return looksOf(said[0].Usages) == looksOf(step.Span.Usages), nil
}

// before returns the span that another one follows.
func before(ctx context.Context, from backend.Reader, at structure.SpanRef) (structure.SpanRef, error) {
	if at.Seq > 1 {
		return structure.SpanRef{Run: at.Run, Seq: at.Seq - 1}, nil
	}
	run, err := from.Run(ctx, at.Run)
	return run.Parent, err
}

// errAddedSince says that another writer added a message first.
var errAddedSince = errors.New("a message with this id was added meanwhile")

// flush adds the pending messages.
func (s *loading) flush(ctx context.Context) error {
	pending := s.pending
	if len(pending) == 0 {
		return nil
	}
	said, err := s.from.Said(ctx, pending)
	if err != nil {
		return err
	}
	err = s.commit(ctx, s.underway, func(c *change) error {
		for i := range pending {
			m := &pending[i]
			if _, known, err := c.find(ctx, m.ID, c.t.ID); known || err != nil {
				return cmp.Or(err, errAddedSince)
			}
			after, err := c.position(ctx, m.ParentID)
			if err != nil {
				return err
			}
			if _, err := s.hang(ctx, c, after, m, said[i], structure.SpanRef{}); err != nil {
				return err
			}
		}
		return nil
	})
	s.pending, s.bytes = nil, 0
	clear(s.isPending)
	if errors.Is(err, errAddedSince) {
		for _, m := range pending {
			if err := s.add(ctx, m); err != nil {
				return err
			}
		}
		return s.flush(ctx)
	}
	if err != nil {
		return err
	}
	s.done.New += len(pending)
	return nil
}

// Spans returns the thread that a chat is and the spans of messages of it, the zero ref for
// none, in a store or inside a transaction of one. It serves those who load what else belongs
// to a chat.
func Spans(ctx context.Context, store *lineage.Store, chatID string, ids ...Ref) (*structure.Thread, []structure.SpanRef, error) {
	s := latest(store)
	t, err := s.thread(ctx, chatID)
	if err != nil {
		return nil, nil, err
	}
	c := &change{state: &s, t: t}
	at := make([]structure.SpanRef, len(ids))
	for i, id := range ids {
		if at[i], err = c.position(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	return t, at, nil
}
