package sqlchat

import (
	"context"
	"errors"
	"time"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var chatSQL = struct{ update sqladapter.Statement }{
	update: `UPDATE "chats" SET "userId" = ?, "title" = ?, "metadata" = ?, ` +
		`"updatedAt" = CASE WHEN "updatedAt" >= ? THEN "updatedAt" + 1 ELSE ? END WHERE "id" = ?`,
}

// CreateChat implements chat.Store.
func (s *store) CreateChat(ctx context.Context, c chat.Chat) (chat.Chat, error) {
	made, created, err := s.upsert(ctx, c)
	if err == nil && !created {
		return chat.Chat{}, &chat.Error{Subject: chat.SubjectChat, ID: c.ID, Err: chat.ErrExists}
	}
	return made, err
}

// UpsertChat implements chat.Store.
func (s *store) UpsertChat(ctx context.Context, c chat.Chat) (chat.Chat, error) {
	made, created, err := s.upsert(ctx, c)
	if err == nil && !created {
		err = c.CheckOpen(made)
	}
	if err != nil {
		return chat.Chat{}, err
	}
	return made, nil
}

// upsert returns the chat with an id, and whether it was created.
func (s *store) upsert(ctx context.Context, c chat.Chat) (made chat.Chat, created bool, err error) {
	if err := errors.Join(c.Check(), chatrows.CheckID(s.db, chat.SubjectChat, c.ID), chatrows.CheckUser(s.db, c.UserID)); err != nil {
		return chat.Chat{}, false, err
	}
	err = chatrows.Write(ctx, s.db, func(conn *sqladapter.Conn) error {
		known, err := chatByID(ctx, conn, c.ID)
		if err != nil {
			return err
		}
		if created = known == nil; !created {
			made = *known
			return sqladapter.ErrUnchanged
		}
		at := moment(c.CreatedAt)
		_, err = conn.Exec(ctx, tables.Chats.Insert, c.ID, c.UserID, chatrows.Optional(c.Title), chatrows.OptionalJSON(c.Metadata), at, time.Now().UnixMilli())
		if err != nil {
			return err
		}
		main := chat.Branch{ID: chat.NewID(), ChatID: c.ID, Name: chat.MainBranch, IsActive: true, CreatedAt: at}
		if err := insertBranch(ctx, conn, main); err != nil {
			return err
		}
		known, err = chatByID(ctx, conn, c.ID)
		if err == nil {
			made = *known
		}
		return err
	})
	return made, created, storable(s.db, err, chat.SubjectChat, c.ID)
}

// Chat implements chat.Store.
func (s *store) Chat(ctx context.Context, id string) (found *chat.Chat, err error) {
	return lists.Read(ctx, s.db, func(c *sqladapter.Conn) (*chat.Chat, error) { return chatByID(ctx, c, id) })
}

// UpdateChat implements chat.Store.
func (s *store) UpdateChat(ctx context.Context, id string, u chat.ChatUpdate) (chat.Chat, error) {
	if err := u.Check(); err != nil {
		return chat.Chat{}, err
	}
	return s.ChangeChat(ctx, id, func(chat.Chat) (chat.ChatUpdate, error) { return u, nil })
}

// ChangeChat implements chat.Store. It locks the chat's row before reading it.
func (s *store) ChangeChat(ctx context.Context, id string, change func(chat.Chat) (chat.ChatUpdate, error)) (changed chat.Chat, err error) {
	var refused error
	err = chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		if err := hold(ctx, c, id); err != nil {
			return err
		}
		known, err := chatByID(ctx, c, id)
		if err == nil && known == nil {
			err = noChat(id)
		}
		if err != nil {
			return err
		}
		u, err := change(*known)
		if err == nil {
			err = errors.Join(u.Check(), u.CheckUser(id, known.UserID))
		}
		user, title, metadata := known.UserID, known.Title, known.Metadata
		if err == nil && u.UserID != nil {
			user = *u.UserID
			err = chatrows.CheckUser(s.db, user)
		}
		if refused = err; refused != nil {
			return sqladapter.ErrUnchanged
		}
		if u.Title != nil {
			title = *u.Title
		}
		if u.Metadata != nil {
			metadata = u.Metadata
		}
		now := time.Now().UnixMilli()
		if _, err := c.Exec(ctx, chatSQL.update, user, chatrows.Optional(title), chatrows.OptionalJSON(metadata), now, now, id); err != nil {
			return err
		}
		if known, err = chatByID(ctx, c, id); err == nil {
			changed = *known
		}
		return err
	})
	if refused != nil {
		return chat.Chat{}, refused
	}
	return changed, storable(s.db, err, chat.SubjectChat, id)
}
