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

// Loading is a whole chat that comes from somewhere else, with its ids and times.
type Loading struct {
	Chat Chat
	// Messages are the messages of the chat, each after its parent. The sequence is read once, and again if a
	// collection deletes messages that the store had.
	Messages    iter.Seq2[Message, error]
	Branches    []Branch
	Checkpoints []Checkpoint
	// Said, when not nil, returns the original usages and content of messages, which are then added as they are. It
	// returns nil for a message that must be made from its data.
	Said func(ctx context.Context, messages []Message) ([]*Said, error)
	// Context, when not nil, creates the context of a branch that the store does not have, in the transaction tx, and
	// returns its id. If it returns the zero id, the branch gets a new context.
	Context func(ctx context.Context, tx *lineage.Store, b Branch) (structure.ContextID, error)
	// Problem, when not nil, is called for each thing that cannot be loaded, with the reason. The rest is loaded.
	Problem func(err error)
}

// Loaded is the result of a loading.
type Loaded struct {
	// Messages is the number of messages. New is the number of them that the store did not have, or had with other
	// content.
	Messages, New int
	// Changed reports whether anything of the chat changed in the store.
	Changed bool
}

// Load adds a chat to a store, or updates it if it was loaded before. What the store has stays, and what is new is
// added. If the chat was updated later than the store's, its title and metadata, branches and checkpoints are
// adopted. Its user is adopted if the store's chat has none. If the chat has another user, the error is ErrOtherUser.
// If nothing is new, nothing changes. A branch moves to its head in the chat, unless in the store it continues after
// that with messages of its own.
//
// A message that has other content or another parent than when it was loaded before is loaded as a new version, and
// so is each message that follows it. Its id, the branches and the checkpoints then lead to the new version. The
// earlier version stays in the history of the thread, with an id derived from its span. Erased content stays erased.
// All new versions become visible together.
//
// Other processes may load and change the chat at the same time. Everything loaded before an error stays. Loading
// again continues.
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

// maxRounds limits how often a loading starts again after collections, and how often it looks for messages that
// others have added after earlier versions in the meantime. The next loading does the rest.
const maxRounds = 10

// isCollected reports whether an error says that a span that existed is gone: it was deleted and collected in the
// meantime.
func isCollected(err error) bool {
	return write.About(err, "span", backend.ErrNotFound) || write.About(err, "run", backend.ErrNotFound)
}

type loading struct {
	state
	from Loading
	// home distinguishes the chat from one with the same id that was created after it was deleted.
	home structure.Home
	// later is set if the chat was updated later than the store's.
	later bool
	// at is the time of the chat's update. underway is the time of commits before the last one.
	at, underway time.Time
	done         Loaded
	// listed maps the ids of the chat's messages to their state in the store.
	listed map[string]standing
	// versions are messages that differ from those in the store, and the messages that follow them. They become
	// visible together, at the end.
	versions []version

	page   []*message // to be placed next, of so many bytes
	inPage map[string]*message
	bytes  int

	problems, ofNames []error // of messages, and of branches and checkpoints
}

// standing is the state of a listed message in the store.
type standing struct {
	at      structure.SpanRef // its span; zero if the message waits or was skipped
	waits   bool              // it is one of the versions
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

// commit commits the changes that fill makes to the chat, as of a time. It records whether there were any.
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

// begin creates the thread if there is none.
func (s *loading) begin(ctx context.Context) error {
	c := s.from.Chat
	// The commits of a loading count as changes of the chat at its time of update. All commits before the last one
	// get an earlier time. Otherwise a loading that continues an interrupted one would not find the chat to be later.
	s.at = time.UnixMilli(c.UpdatedAt).UTC()
	s.underway = time.UnixMilli(max(c.UpdatedAt-1, 0)).UTC()
	return s.update(ctx, func(in *state) error {
		in.stage().Load(s.underway, backend.Normal)
		t, err := in.thread(ctx, c.ID)
		s.done.Changed = isNotFound(err)
		if s.done.Changed {
			// Branches are created at the end.
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
		known, err := in.chatOf(ctx, t) // the times of its messages count too
		if err != nil {
			return err
		}
		s.home, s.later = t.Home(), c.UpdatedAt > known.UpdatedAt
		return s.checkUser(t.UserID)
	})
}

// checkUser returns an error if the store's chat has another user.
func (s *loading) checkUser(is string) error {
	user := cmp.Or(s.from.Chat.UserID, is)
	return ChatUpdate{UserID: &user}.CheckUser(s.from.Chat.ID, is)
}

// add adds a message to the page.
func (s *loading) add(ctx context.Context, m Message) error {
	m.ChatID = s.from.Chat.ID
	if s.inPage[m.ID] != nil { // two messages have this id
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

// Spans returns the thread of a chat and the spans of some of its messages, the zero ref for a message that does not
// exist. It works in a store or inside a transaction. It is for callers that load other data of a chat.
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
