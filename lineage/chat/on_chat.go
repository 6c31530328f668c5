package chat

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// thread returns the thread of a chat, nil if there is none.
func (s *state) thread(ctx context.Context, chatID string) (*structure.Thread, error) {
	t, err := s.from.Thread(ctx, lineage.SourceThread(chatID))
	if isNotFound(err) {
		return s.unnamedThread(ctx, chatID)
	}
	return t, err
}

// mustThread returns the thread of a chat for changes: without a chat they cannot be.
func (s *state) mustThread(ctx context.Context, chatID string) (*structure.Thread, error) {
	t, err := s.thread(ctx, chatID)
	if err == nil && t == nil {
		err = noChat(chatID)
	}
	return t, err
}

func noChat(id string) error { return &Error{Subject: SubjectChat, ID: id, Err: ErrNotFound} }

// chatOf returns the chat that a thread is.
func (s *state) chatOf(ctx context.Context, t *structure.Thread) (Chat, error) {
	updated, err := backend.UpdatedAt(ctx, s.from, t)
	return Chat{
		ID: IDOfThread(t), UserID: t.UserID, Title: t.Title, Metadata: t.Metadata,
		CreatedAt: t.CreatedAt.UnixMilli(), UpdatedAt: updated.UnixMilli(),
	}, err
}

// CreateChat implements Store.
func (s *onStore) CreateChat(ctx context.Context, c Chat) (Chat, error) {
	if err := c.Check(); err != nil {
		return Chat{}, err
	}
	exists := &Error{Subject: SubjectChat, ID: c.ID, Err: ErrExists}
	if t, err := s.unnamedThread(ctx, c.ID); err != nil {
		return Chat{}, err
	} else if t != nil {
		return Chat{}, exists
	}
	_, err := s.store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: c.ID, UserID: c.UserID, Title: c.Title, Metadata: c.Metadata, Keep: true, CreatedAt: moment(c.CreatedAt),
	})
	if errors.Is(err, ErrExists) {
		return Chat{}, exists
	}
	if err != nil {
		return Chat{}, err
	}
	return s.made(ctx, c.ID)
}

// made returns a chat that there was just now.
func (s *onStore) made(ctx context.Context, id string) (Chat, error) {
	c, err := s.Chat(ctx, id)
	if err == nil && c == nil {
		err = noChat(id)
	}
	if err != nil {
		return Chat{}, err
	}
	return *c, nil
}

// UpsertChat implements Store.
func (s *onStore) UpsertChat(ctx context.Context, c Chat) (Chat, error) {
	if err := c.Check(); err != nil {
		return Chat{}, err
	}
	for {
		known, err := s.Chat(ctx, c.ID)
		if err != nil {
			return Chat{}, err
		}
		if known != nil {
			if known.UserID != c.UserID {
				return Chat{}, &Error{Subject: SubjectChat, ID: c.ID, Err: ErrOtherUser}
			}
			return *known, nil
		}
		made, err := s.CreateChat(ctx, c)
		if !errors.Is(err, ErrExists) {
			return made, err
		}
	}
}

// Chat implements Store.
func (s *onStore) Chat(ctx context.Context, id string) (*Chat, error) {
	t, err := s.thread(ctx, id)
	if err != nil || t == nil {
		return nil, err
	}
	c, err := s.chatOf(ctx, t)
	return &c, err
}

// UpdateChat implements Store.
func (s *onStore) UpdateChat(ctx context.Context, id string, u ChatUpdate) (Chat, error) {
	if err := u.Check(); err != nil {
		return Chat{}, err
	}
	return s.ChangeChat(ctx, id, func(Chat) (ChatUpdate, error) { return u, nil })
}

// ChangeChat implements Store.
func (s *onStore) ChangeChat(ctx context.Context, id string, change func(Chat) (ChatUpdate, error)) (Chat, error) {
	err := s.update(ctx, func(tx *lineage.Tx, in *state) error {
		t, err := in.mustThread(ctx, id)
		if err != nil {
			return err
		}
		u, err := change(Chat{
			ID: id, UserID: t.UserID, Title: t.Title, Metadata: t.Metadata,
			CreatedAt: t.CreatedAt.UnixMilli(), UpdatedAt: t.UpdatedAt.UnixMilli(),
		})
		if err == nil {
			err = u.Check()
		}
		if err != nil {
			return err
		}
		thread, err := tx.Thread(ctx, t.ID)
		if err != nil {
			return err
		}
		return thread.Update(ctx, func(i *lineage.ThreadInfo) {
			if u.Title != nil {
				i.Title = *u.Title
			}
			if u.Metadata != nil {
				i.Metadata = u.Metadata
			}
		})
	})
	if err != nil {
		return Chat{}, err
	}
	return s.made(ctx, id)
}

// ListChats implements Store.
func (s *onStore) ListChats(ctx context.Context, o ListOptions) iter.Seq2[ChatInfo, error] {
	return func(yield func(ChatInfo, error) bool) {
		threads, err := s.choose(ctx, o)
		if err != nil {
			yield(ChatInfo{}, err)
			return
		}
		for i := range threads {
			info, err := s.chatInfo(ctx, &threads[i])
			if isNotFound(err) {
				continue // deleted since
			}
			if !yield(info, err) || err != nil {
				return
			}
		}
	}
}

// choose returns the threads of the chats that are wanted, in order.
func (s *onStore) choose(ctx context.Context, o ListOptions) ([]lineage.ThreadInfo, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var chosen []lineage.ThreadInfo
	for t, err := range s.store.Threads(ctx) {
		if err != nil {
			return nil, err
		}
		info, err := t.Info(ctx)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if (o.UserID == "" || o.UserID == info.UserID) && (o.Metadata == nil || o.Metadata.Matches(info.Metadata)) {
			chosen = append(chosen, info)
		}
	}
	slices.SortFunc(chosen, func(a, b lineage.ThreadInfo) int {
		return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), b.CreatedAt.Compare(a.CreatedAt), a.ID.Compare(b.ID))
	})
	chosen = chosen[min(o.Offset, len(chosen)):]
	if o.Limit > 0 {
		chosen = chosen[:min(o.Limit, len(chosen))]
	}
	return chosen, nil
}

func (s *onStore) chatInfo(ctx context.Context, t *lineage.ThreadInfo) (ChatInfo, error) {
	is, err := s.from.Thread(ctx, t.ID)
	if err != nil {
		return ChatInfo{}, err
	}
	info := ChatInfo{Chat: Chat{
		ID: chatID(t.SourceID, t.ID), UserID: t.UserID, Title: t.Title, Metadata: t.Metadata,
		CreatedAt: t.CreatedAt.UnixMilli(), UpdatedAt: t.UpdatedAt.UnixMilli(),
	}}
	reach, err := backend.ReachOf(ctx, s.from, is)
	if err != nil {
		return ChatInfo{}, err
	}
	info.MessageCount = int(reach.Spans())
	for _, err := range s.from.Branches(ctx, t.ID, "", "") {
		if err != nil {
			return ChatInfo{}, err
		}
		info.BranchCount++
	}
	return info, nil
}

// DeleteChat implements Store.
func (s *onStore) DeleteChat(ctx context.Context, id string, o DeleteOptions) (bool, error) {
	is, err := s.thread(ctx, id)
	if err != nil || is == nil {
		return false, err
	}
	t, err := s.store.Thread(ctx, is.ID)
	if err == nil {
		err = t.DeleteIf(ctx, func(t *lineage.ThreadInfo) error {
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
