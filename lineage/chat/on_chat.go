package chat

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// thread returns the thread of a chat, nil if there is none.
func (s *onStore) thread(ctx context.Context, chatID string) (*lineage.Thread, error) {
	t, err := s.store.FindThread(ctx, chatID)
	if !isNotFound(err) {
		return t, err
	}
	r, err := s.unnamedThread(ctx, chatID)
	if err != nil || r == nil {
		return nil, err
	}
	return s.store.Thread(ctx, r.ID)
}

// mustThread returns the thread of a chat for changes: without a chat they cannot be.
func (s *onStore) mustThread(ctx context.Context, chatID string) (structure.ThreadID, error) {
	t, err := s.threadNow(ctx, chatID)
	if err != nil {
		return structure.ThreadID{}, err
	}
	return t.ID, nil
}

// threadNow returns the thread of a chat as it is now, for changes that asIs holds to
// that. A chat that was deleted and made anew meanwhile has the same thread, but its
// messages are others.
func (s *onStore) threadNow(ctx context.Context, chatID string) (*structure.Thread, error) {
	t, err := s.engine.Thread(ctx, lineage.SourceThread(chatID))
	if isNotFound(err) {
		if t, err = s.unnamedThread(ctx, chatID); err == nil && t == nil {
			err = noChat(chatID)
		}
	}
	return t, err
}

// asIs holds a commit to a thread being as it was looked at, and to contexts standing
// where they did.
func asIs(t *structure.Thread, tips ...backend.Expect) backend.Options {
	return backend.Options{Threads: []backend.ExpectThread{{ID: t.ID, Was: t}}, Tips: tips}
}

func noChat(id string) error { return &Error{Subject: SubjectChat, ID: id, Err: ErrNotFound} }

// chatOf returns the chat that a thread is.
func chatOf(t *lineage.ThreadInfo) Chat {
	return Chat{
		ID: chatID(t.SourceID, t.ID), UserID: t.UserID, Title: t.Title, Metadata: t.Metadata,
		CreatedAt: t.CreatedAt.UnixMilli(), UpdatedAt: t.UpdatedAt.UnixMilli(),
	}
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
	t, err := s.store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: c.ID, UserID: c.UserID, Title: c.Title, Metadata: c.Metadata, CreatedAt: moment(c.CreatedAt),
	})
	if errors.Is(err, ErrExists) {
		return Chat{}, exists
	}
	if err != nil {
		return Chat{}, err
	}
	return s.chat(ctx, t, c.ID)
}

// chat returns the chat that a thread is. It may be gone by now.
func (s *onStore) chat(ctx context.Context, t *lineage.Thread, id string) (Chat, error) {
	info, err := t.Info(ctx)
	if isNotFound(err) {
		return Chat{}, noChat(id)
	}
	if err != nil {
		return Chat{}, err
	}
	return chatOf(&info), nil
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
	c, err := s.chat(ctx, t, id)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
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
	t, err := s.thread(ctx, id)
	if err != nil {
		return Chat{}, err
	}
	if t == nil {
		return Chat{}, noChat(id)
	}
	var refused error
	err = s.change(ctx, t.ID(), func(r *structure.Thread) ([]structure.Record, error) {
		u, err := change(Chat{
			ID: id, UserID: r.UserID, Title: r.Title, Metadata: r.Metadata,
			CreatedAt: r.CreatedAt.UnixMilli(), UpdatedAt: r.UpdatedAt.UnixMilli(),
		})
		if err == nil {
			err = u.Check()
		}
		if err != nil {
			refused = err
			return nil, err
		}
		if u.Title != nil {
			r.Title = *u.Title
		}
		if u.Metadata != nil {
			r.Metadata = u.Metadata
		}
		return nil, nil
	})
	if refused != nil {
		return Chat{}, refused
	}
	if isNotFound(err) {
		return Chat{}, noChat(id)
	}
	if err != nil {
		return Chat{}, err
	}
	return s.chat(ctx, t, id)
}

// ListChats implements Store. It costs the offset and what is read of the list, with a
// filter for a user, or for a value at the top of the metadata that is not nil. Other filters
// are tested on each chat.
func (s *onStore) ListChats(ctx context.Context, o ListOptions) iter.Seq2[ChatInfo, error] {
	return func(yield func(ChatInfo, error) bool) {
		if err := o.Check(); err != nil {
			yield(ChatInfo{}, err)
			return
		}
		left, skip := o.Limit, o.Offset
		for t, err := range s.store.Threads(ctx, o.query()) {
			if err != nil {
				yield(ChatInfo{}, err)
				return
			}
			if o.Metadata != nil && !o.Metadata.Matches(t.Was.Metadata) {
				continue
			}
			if skip > 0 {
				skip--
				continue
			}
			info, err := s.chatInfo(ctx, &t.Was)
			if isNotFound(err) {
				continue // deleted since
			}
			if !yield(info, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

// query returns the part of the options that a store's lists of threads answer.
func (o *ListOptions) query() (q lineage.ThreadQuery) {
	if o.UserID != "" {
		q.User = &o.UserID
	}
	if m := o.Metadata; m != nil && m.Value != nil && !strings.Contains(m.Key, ".") {
		if value, err := json.Marshal(m.Value); err == nil {
			q.Metadata = []lineage.MetadataIs{{Key: m.Key, Value: value}}
		}
	}
	return q
}

func (s *onStore) chatInfo(ctx context.Context, t *lineage.ThreadInfo) (ChatInfo, error) {
	info := ChatInfo{Chat: chatOf(t)}
	graph, err := s.reach(ctx, t.ID)
	if err != nil {
		return ChatInfo{}, err
	}
	info.MessageCount = graph.size()
	for _, err := range s.engine.Branches(ctx, t.ID, "", "") {
		if err != nil {
			return ChatInfo{}, err
		}
		info.BranchCount++
	}
	return info, nil
}

// DeleteChat implements Store.
func (s *onStore) DeleteChat(ctx context.Context, id string, o DeleteOptions) (bool, error) {
	t, err := s.thread(ctx, id)
	if err != nil || t == nil {
		return false, err
	}
	err = t.DeleteIf(ctx, func(t *lineage.ThreadInfo) error {
		if o.UserID != "" && o.UserID != t.UserID {
			return errNotTheirs
		}
		return nil
	})
	if errors.Is(err, errNotTheirs) || isAbout(err, "thread", ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

var errNotTheirs = errors.New("the chat is another user's")
