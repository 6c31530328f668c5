package chat

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

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
			for _, problem := range append(s.problems, s.nameProblems...) {
				l.Problem(problem)
			}
		}
		return sum, err
	}
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

// begin creates the thread if there is none.
func (s *loading) begin(ctx context.Context) error {
	c := s.from.Chat
	// The time of a commit becomes the time of update of the stored chat. Commits before the last one get an earlier time:
	// if the loading is interrupted, the next one must see that its chat was updated later.
	s.at = time.UnixMilli(c.UpdatedAt).UTC()
	s.underway = time.UnixMilli(max(c.UpdatedAt-1, 0)).UTC()
	return s.update(ctx, func(in *state) error {
		in.stage().Load(s.underway, backend.Normal)
		t, err := in.thread(ctx, c.ID)
		s.done.Changed = isNotFound(err)
		if s.done.Changed { // there is no thread yet; its branches are created at the end
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
	added := &message{Message: m}
	var err error
	if added.content, err = asData(&m); err != nil {
		return err
	}
	s.page, s.inPage[m.ID] = append(s.page, added), added
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
	c := &openChat{state: &s, t: t}
	at := make([]structure.SpanRef, len(ids))
	for i, id := range ids {
		if at[i], err = c.position(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	return t, at, nil
}
