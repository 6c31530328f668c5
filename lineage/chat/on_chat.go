package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// chatOf returns the chat of a thread.
func (s *state) chatOf(ctx context.Context, t *structure.Thread) (Chat, error) {
	updated, err := backend.UpdatedAt(ctx, s.from, t)
	return chatAsOf(t, updated), err
}

func chatAsOf(t *structure.Thread, updated time.Time) Chat {
	return Chat{
		ID: IDOfThread(t), UserID: t.UserID, Title: t.Title, Metadata: t.Metadata,
		CreatedAt: t.CreatedAt.UnixMilli(), UpdatedAt: updated.UnixMilli(),
	}
}

// CreateChat implements Store.
func (s *onStore) CreateChat(ctx context.Context, c Chat) (Chat, error) {
	return s.newChat(ctx, c, false)
}

// UpsertChat implements Store.
func (s *onStore) UpsertChat(ctx context.Context, c Chat) (Chat, error) {
	stored, err := s.newChat(ctx, c, true)
	if err == nil {
		err = c.CheckOpen(stored)
	}
	if err != nil {
		return Chat{}, err
	}
	return stored, nil
}

// newChat creates a chat. An existing one is returned if reuse is set, else refused.
func (s *onStore) newChat(ctx context.Context, c Chat, reuse bool) (Chat, error) {
	if err := c.Check(); err != nil {
		return Chat{}, err
	}
	_, err := s.thread(ctx, c.ID)
	switch {
	case err == nil && !reuse:
		err = ErrExists
	case isNotFound(err):
		create := s.store.CreateThread
		if reuse {
			create = s.store.OpenThread
		}
		_, err = create(ctx, lineage.ThreadOptions{
			SourceID: c.ID, UserID: c.UserID, Title: c.Title, Metadata: c.Metadata, Keep: true, CreatedAt: moment(c.CreatedAt),
		})
	}
	if errors.Is(err, ErrExists) {
		err = &Error{Subject: SubjectChat, ID: c.ID, Err: ErrExists}
	}
	if err != nil {
		return Chat{}, err
	}
	return s.mustChat(ctx, c.ID)
}

// mustChat returns a chat, or ErrNotFound if there is none.
func (s *onStore) mustChat(ctx context.Context, id string) (Chat, error) {
	t, err := s.thread(ctx, id)
	if err != nil {
		return Chat{}, err
	}
	return s.chatOf(ctx, t)
}

// Chat implements Store.
func (s *onStore) Chat(ctx context.Context, id string) (*Chat, error) {
	return orNone(s.mustChat(ctx, id))
}

// UpdateChat implements Store.
func (s *onStore) UpdateChat(ctx context.Context, id string, u ChatUpdate) (Chat, error) {
	if err := u.Check(); err != nil {
		return Chat{}, err
	}
	return s.ChangeChat(ctx, id, func(Chat) (ChatUpdate, error) { return u, nil })
}

// ChangeChat implements Store.
func (s *onStore) ChangeChat(ctx context.Context, id string, update func(Chat) (ChatUpdate, error)) (Chat, error) {
	err := s.change(ctx, id, func(c *openChat) error {
		current, err := c.chatOf(ctx, c.t)
		if err != nil {
			return err
		}
		u, err := update(current)
		if err != nil {
			return err
		}
		if err := cmp.Or(u.Check(), u.CheckUser(id, c.t.UserID)); err != nil {
			return err
		}
		return c.thread.Update(ctx, func(i *lineage.ThreadInfo) error {
			if u.UserID != nil {
				i.UserID = *u.UserID
			}
			if u.Title != nil {
				i.Title = *u.Title
			}
			if u.Metadata != nil {
				i.Metadata = u.Metadata
			}
			return nil
		})
	})
	if err != nil {
		return Chat{}, err
	}
	return s.mustChat(ctx, id)
}

// ListChats implements Store. Its cost is that of skipping the offset and of the listing: see backend.ThreadQuery.
// Filters for values in nested objects of the metadata, and for missing values, are tested on each chat.
func (s *onStore) ListChats(ctx context.Context, o ListOptions) iter.Seq2[ChatInfo, error] {
	return func(yield func(ChatInfo, error) bool) {
		q, err := o.ThreadQuery()
		if err := cmp.Or(o.Check(), err); err != nil {
			yield(ChatInfo{}, err)
			return
		}
		left, skip := o.Limit, o.Offset
		for t, err := range s.store.Threads(ctx, q) {
			if err != nil {
				yield(ChatInfo{}, err)
				return
			}
			if slices.ContainsFunc(o.Metadata, func(f MetadataFilter) bool { return !f.Matches(t.Was.Metadata) }) {
				continue
			}
			if listed, err := s.isChat(ctx, t.Was.ID, t.Was.SourceID); err != nil {
				yield(ChatInfo{}, err)
				return
			} else if !listed {
				continue
			}
			if skip > 0 {
				skip--
				continue
			}
			info, err := s.chatInfo(ctx, &t.Was)
			if isNotFound(err) {
				continue // deleted in the meantime
			}
			info.Page = t.Page.String()
			if !yield(info, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// ThreadQuery returns the part of the options that listings of threads support. What a listing yields must still be
// tested with Passes, and counted.
func (o *ListOptions) ThreadQuery() (q lineage.ThreadQuery, err error) {
	q = lineage.ThreadQuery{SourcePrefix: o.IDPrefix, TitlePrefix: o.TitlePrefix, Oldest: o.Oldest}
	if o.UserID != "" {
		q.User = &o.UserID
	}
	for _, m := range o.Metadata {
		if m.Value == nil || strings.Contains(m.Key, ".") {
			continue
		}
		if value, err := json.Marshal(m.Value); err == nil {
			q.Metadata = append(q.Metadata, lineage.MetadataIs{Key: m.Key, Value: value})
		}
	}
	if o.From != 0 {
		q.From = time.UnixMilli(o.From)
	}
	if o.To != 0 {
		q.To = time.UnixMilli(o.To)
	}
	q.After, err = backend.ParsePageToken(o.After)
	return q, err
}

// OfThread returns the chat of On(store) that a thread is.
func OfThread(t *lineage.ThreadInfo) Chat {
	return Chat{
		ID: cmp.Or(t.SourceID, t.ID.String()), UserID: t.UserID, Title: t.Title, Metadata: t.Metadata,
		CreatedAt: t.CreatedAt.UnixMilli(), UpdatedAt: t.UpdatedAt.UnixMilli(),
	}
}

// IsChat reports whether a thread is a chat of On(store). A thread without a source id is none if its id is the source
// id of another thread: the id of the chat is then that thread's.
func IsChat(ctx context.Context, store *lineage.Store, t *lineage.ThreadInfo) (bool, error) {
	s := latest(store)
	return s.isChat(ctx, t.ID, t.SourceID)
}

// InfoOf returns the chat of On(store) that a thread is, with counts: see IsChat. The time of its update is that of the
// listing. A thread that was deleted is ErrNotFound.
func InfoOf(ctx context.Context, store *lineage.Store, t *lineage.ThreadInfo) (ChatInfo, error) {
	s := latest(store)
	return s.chatInfo(ctx, t)
}

func (s *state) chatInfo(ctx context.Context, t *lineage.ThreadInfo) (ChatInfo, error) {
	thread, err := s.from.Thread(ctx, t.ID)
	if err != nil {
		return ChatInfo{}, err
	}
	reach, err := backend.ReachOf(ctx, s.from, thread)
	if err != nil {
		return ChatInfo{}, err
	}
	branches, err := backend.BranchNames(ctx, s.from, t.ID, "", math.MaxInt)
	return ChatInfo{Chat: chatAsOf(thread, t.UpdatedAt), MessageCount: int(reach.Spans()), BranchCount: len(branches)}, err
}

// DeleteChat implements Store.
func (s *onStore) DeleteChat(ctx context.Context, id string, o DeleteOptions) (bool, error) {
	thread, err := s.thread(ctx, id)
	if err != nil {
		return false, ignoreNotFound(err)
	}
	t, err := s.store.Thread(ctx, thread.ID)
	if err == nil {
		err = t.Delete(ctx, func(t *lineage.ThreadInfo) error {
			if o.UserID != "" && o.UserID != t.UserID {
				return errNotTheirs
			}
			return nil
		})
	}
	if errors.Is(err, errNotTheirs) || write.About(err, "thread", ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

var errNotTheirs = errors.New("the chat is another user's")

// Chat returns the chat.
func (r *ThreadReader) Chat(ctx context.Context) (Chat, error) { return r.chatOf(ctx, r.thread) }
