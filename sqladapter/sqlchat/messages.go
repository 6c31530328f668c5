package sqlchat

import (
	"context"
	"errors"
	"iter"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

var messageSQL = struct{ children sqladapter.Statement }{
	children: `SELECT "id" FROM "messages" WHERE "parentId" = ? AND "chatId" = ? {kept:messages.chatId} ORDER BY "id" {limit}`,
}

// AddMessage implements chat.Store.
func (s *store) AddMessage(ctx context.Context, m chat.Message) error {
	if err := errors.Join(m.Check(), chatrows.CheckMessage(s.db, m)); err != nil {
		return err
	}
	m.CreatedAt = moment(m.CreatedAt)
	err := chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		if err := touch(ctx, c, m.ChatID); err != nil {
			return err
		}
		known, err := messageOf(ctx, c, m.ChatID, m.ID)
		if err != nil {
			return err
		}
		if known != nil {
			if err := m.AgreesWith(*known); err != nil {
				return err
			}
			return sqladapter.ErrUnchanged
		}
		if err := mustMessage(ctx, c, m.ChatID, m.ParentID); err != nil {
			return err
		}
		if err := mustKnowSources(ctx, c, []chat.Message{m}); err != nil {
			return err
		}
		return chatrows.Insert(ctx, c, []chat.Message{m})
	})
	return storable(s.db, err, chat.SubjectMessage, m.ID)
}

// Message implements chat.Store.
func (s *store) Message(ctx context.Context, chatID, id string) (*chat.Message, error) {
	return lists.Read(ctx, s.db, func(c *sqladapter.Conn) (*chat.Message, error) { return messageOf(ctx, c, chatID, id) })
}

// HasChildren implements chat.Store.
func (s *store) HasChildren(ctx context.Context, chatID, id string) (bool, error) {
	return lists.Read(ctx, s.db, func(c *sqladapter.Conn) (bool, error) {
		if found, err := hasMessage(ctx, c, chatID, id); err != nil || !found {
			return false, err
		}
		child, err := lists.First(ctx, c, lists.ScanString, messageSQL.children, id, chatID, 1)
		return child != nil, err
	})
}

// Messages implements chat.Store.
func (s *store) Messages(ctx context.Context, chatID string) iter.Seq2[chat.Message, error] {
	return func(yield func(chat.Message, error) bool) {
		b, err := s.ActiveBranch(ctx, chatID)
		if err == nil && b == nil {
			var c *chat.Chat
			if c, err = s.Chat(ctx, chatID); err == nil && c == nil {
				err = noChat(chatID)
			}
		}
		if err != nil {
			yield(chat.Message{}, err)
			return
		}
		if b == nil || b.HeadMessageID == "" {
			return
		}
		for m, err := range s.MessageChain(ctx, chatID, string(b.HeadMessageID)) {
			if errors.Is(err, chat.ErrNotFound) {
				err = noChat(chatID) // messages are only deleted with their chat
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// MessageChain implements chat.Store. It reads the ids first, and the messages on demand. If the chat is deleted
// meanwhile, the error is ErrNotFound.
func (s *store) MessageChain(ctx context.Context, chatID, id string) iter.Seq2[chat.Message, error] {
	return func(yield func(chat.Message, error) bool) {
		ids, err := lists.Read(ctx, s.db, func(c *sqladapter.Conn) ([]string, error) {
			ids, err := chainOf(ctx, c, chatID, id)
			if err == nil && len(ids) == 0 {
				_, err = hasMessage(ctx, c, chatID, id)
			}
			return ids, err
		})
		if err != nil {
			yield(chat.Message{}, err)
			return
		}
		for m, err := range chatrows.InOrder(ctx, s.db, ids) {
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// requireChat returns an error if a chat was deleted while the ancestors of a message were read, and has no message at the
// position that was reached. Messages are only deleted with their chat.
func requireChat(ctx context.Context, c *sqladapter.Conn, chatID, id, reached string) error {
	found, err := hasMessage(ctx, c, chatID, reached)
	if err != nil || found || reached == id {
		return err
	}
	if found, err = hasMessage(ctx, c, chatID, id); err == nil && !found {
		return noChat(chatID)
	}
	return err
}

// Ancestors implements chat.Store. If the chat is deleted meanwhile, the error is ErrNotFound.
func (s *store) Ancestors(ctx context.Context, chatID, id string) iter.Seq2[chat.Message, error] {
	return func(yield func(chat.Message, error) bool) {
		w := climb{chatID: chatID, at: id}
		for step := 16; w.at != ""; step = min(2*step, chainStep) {
			links, err := lists.Read(ctx, s.db, func(c *sqladapter.Conn) ([]chatrows.Edge, error) {
				links, err := w.read(ctx, c, step)
				if err == nil && len(links) == 0 {
					err = requireChat(ctx, c, chatID, id, w.at)
				}
				return links, err
			})
			if err != nil {
				yield(chat.Message{}, err)
				return
			}
			ids, err := w.pass(links)
			if err != nil {
				yield(chat.Message{}, err)
				return
			}
			for m, err := range chatrows.InOrder(ctx, s.db, ids) {
				if !yield(m, err) || err != nil {
					return
				}
			}
		}
	}
}

// CountMessages implements chat.Store.
func (s *store) CountMessages(ctx context.Context, chatID, id string) (int, error) {
	return lists.Read(ctx, s.db, func(c *sqladapter.Conn) (int, error) {
		if found, err := hasMessage(ctx, c, chatID, id); err != nil || !found {
			return 0, err
		}
		depths, err := chatrows.Depths(ctx, c, chatID, []string{id})
		return depths[id], err
	})
}
