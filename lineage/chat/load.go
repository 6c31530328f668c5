package chat

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Loading is a chat that comes from elsewhere as a whole, with its ids and times.
type Loading struct {
	Chat Chat
	// Messages are those of the chat, parents before their children. They are read once, and
	// again if a collection meanwhile deleted what the store had of them.
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
// Others may load and change the chat meanwhile. Everything loaded before an error
// stays; loading again continues.
func Load(ctx context.Context, store *lineage.Store, l Loading) (Loaded, error) {
	var sum Loaded
	for round := 1; ; round++ {
		s := &loading{state: latest(store), from: l, listed: make(map[string]standing), inPage: make(map[string]*message)}
		err := s.load(ctx)
		sum.Messages = s.done.Messages
		sum.New += s.done.New
		sum.Changed = sum.Changed || s.done.Changed
		if round < maxRounds && isCollected(err) {
			continue
		}
		if l.Problem != nil {
			for _, problem := range append(s.problems, s.ofNames...) {
				l.Problem(problem)
			}
		}
		return sum, err
	}
}

// maxRounds limits how often a loading begins again after collections, and how often it looks for
// messages that others added meanwhile after earlier versions. The next loading does the rest.
const maxRounds = 10

// isCollected reports whether an error says that a span is not there, which was: it was deleted and
// collected meanwhile.
func isCollected(err error) bool {
	return write.About(err, "span", backend.ErrNotFound) || write.About(err, "run", backend.ErrNotFound)
}

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
	// listed are the messages that the chat has, by their ids.
	listed map[string]standing
	// disordered is set when a listed message may follow an earlier version: the chat has it after a
	// message that only the store has, or has its parent twice.
	disordered bool
	// versions are messages that the store has otherwise, and those that follow them. They come into force
	// together, at the end.
	versions []version

	page   []*message // to be placed next, of so many bytes
	inPage map[string]*message
	bytes  int

	problems, ofNames []error // of messages, and of branches and checkpoints
}

// standing is where a listed message stands in the store.
type standing struct {
	at      structure.SpanRef // its span, zero if the message waits or was left out
	waits   bool              // among the versions
	skipped bool              // it was left out
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
// anything.
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

// add adds a message to the page.
func (s *loading) add(ctx context.Context, m Message) error {
	m.ChatID = s.from.Chat.ID
	if s.inPage[m.ID] != nil { // there are two of them
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	if err := m.Check(); err != nil {
		s.listed[m.ID] = standing{skipped: true}
		s.problems = append(s.problems, err)
		return nil
	}
	is := &message{Message: m}
	var err error
	if is.content, err = asData(&m); err != nil {
		return err
	}
	s.page, s.inPage[m.ID] = append(s.page, is), is
	if s.bytes += len(m.Data); len(s.page) >= pageMessages || s.bytes > pageBytes {
		return s.flush(ctx)
	}
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
