package chat

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

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

	page   []*message // the messages to place next
	inPage map[string]*message
	bytes  int // the size of the page

	problems, nameProblems []error // of messages, and of branches and checkpoints
}

// standing says where a listed message is in the store.
type standing struct {
	at      structure.SpanRef // its span; zero if the message waits or was skipped
	waits   bool              // it is placed at the end, with the versions
	skipped bool              // it was left out
}

// commit commits the changes that fill makes to the chat, with a time. It records whether there were any.
func (s *loading) commit(ctx context.Context, at time.Time, fill func(c *openChat) error) error {
	changed := false
	err := s.change(ctx, s.from.Chat.ID, func(c *openChat) error {
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

// checkUser returns an error if the store's chat has another user.
func (s *loading) checkUser(stored string) error {
	user := cmp.Or(s.from.Chat.UserID, stored)
	return ChatUpdate{UserID: &user}.CheckUser(s.from.Chat.ID, stored)
}

// maxRounds limits how often a loading starts again after collections. It also limits how often a loading adds messages
// again that others have added after earlier versions in the meantime. The next loading does the rest.
const maxRounds = 10

// isCollected reports whether an error says that a span that existed is gone: it was deleted and collected in the
// meantime.
func isCollected(err error) bool {
	return write.About(err, "span", backend.ErrNotFound) || write.About(err, "run", backend.ErrNotFound)
}

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

// Said is the original content of a message: the usages of its span, each with its type and origin, and the blocks
// that they name.
type Said struct {
	Usages []structure.Usage
	// From has the blocks, each with its whole body.
	From form.Blocks
}
