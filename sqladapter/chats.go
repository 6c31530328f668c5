package sqladapter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// Chats returns the chats in the database. Any number of stores may be created for a database,
// which its owner must close.
//
// It includes messages, branches and checkpoints written by other programs.
func (db *DB) Chats() chat.Store { return &chatStore{db: db} }

type chatStore struct{ db *DB }

var chatSQL = struct {
	byID, touch, hold, update                      Statement
	idsOfUser, messageCounts, branchCounts, titles Statement
	removeCheckpoints                              Statement
}{
	byID:  `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE "id" = ? {kept:chats.id}`,
	touch: `UPDATE "chats" SET "updatedAt" = CASE WHEN "updatedAt" >= ? THEN "updatedAt" + 1 ELSE ? END WHERE "id" = ? {kept:chats.id}`,
	hold:  `UPDATE "chats" SET "updatedAt" = "updatedAt" WHERE "id" IN ({list})`,
	update: `UPDATE "chats" SET "userId" = ?, "title" = ?, "metadata" = ?, ` +
		`"updatedAt" = CASE WHEN "updatedAt" >= ? THEN "updatedAt" + 1 ELSE ? END WHERE "id" = ?`,

	idsOfUser:         `SELECT "id" FROM "chats" WHERE "userId" = ? {kept:chats.id}`,
	messageCounts:     `SELECT "chatId", COUNT(*) AS "count" FROM "messages" WHERE "chatId" IN ({list}) GROUP BY "chatId"`,
	titles:            `SELECT "id", "title" FROM "chats" WHERE "id" > ? {kept:chats.id} ORDER BY "id" {limit}`,
	removeCheckpoints: `DELETE FROM "checkpoints" WHERE "chatId" = ?`,
	branchCounts:      `SELECT "chatId", COUNT(*) AS "count" FROM "branches" WHERE "chatId" IN ({list}) GROUP BY "chatId"`,
}

func noChat(id string) error {
	return &chat.Error{Subject: chat.SubjectChat, ID: id, Err: chat.ErrNotFound}
}

// moment returns the caller's time, or now if it is 0.
func moment(millis int64) int64 { return cmp.Or(millis, time.Now().UnixMilli()) }

// optional returns text, or null if it is empty.
func optional[T ~string](s T) any {
	if s == "" {
		return nil
	}
	return string(s)
}

// jsonText returns JSON as a parameter, or null for nil.
func jsonText(b json.RawMessage) any {
	if b == nil {
		return nil
	}
	return b
}

// all scans all rows of a query.
func all[T any](rows *Rows, err error, scan func(*Rows) (T, error)) ([]T, error) {
	if err != nil {
		return nil, matched(err)
	}
	defer rows.Close()
	var found []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, rows.Err()
}

// first scans the first row of a query. It returns nil if there is none.
func first[T any](rows *Rows, err error, scan func(*Rows) (T, error)) (*T, error) {
	if err != nil {
		return nil, matched(err)
	}
	defer rows.Close()
	if !rows.Next() {
		return nil, rows.Err()
	}
	v, err := scan(rows)
	if err != nil {
		return nil, err
	}
	return &v, rows.Close()
}

func scanString(rows *Rows) (s string, err error) {
	err = rows.Scan(&s)
	return s, err
}

func (c *Conn) chat(ctx context.Context, id string) (*chat.Chat, error) {
	rows, err := c.Query(ctx, chatSQL.byID, id)
	found, err := first(rows, err, scanChat)
	if found == nil || found.ID != id { // the database may compare loosely
		return nil, err
	}
	return found, err
}

// touch sets the update time of a chat to now. It locks the chat until the end of the transaction.
func (c *Conn) touch(ctx context.Context, id string) error {
	if !utf8.ValidString(id) {
		return noChat(id)
	}
	if c.db.limits.Loose {
		if is, err := c.chat(ctx, id); err != nil || is == nil {
			return cmp.Or(err, noChat(id))
		}
	}
	now := time.Now().UnixMilli()
	n, err := c.Exec(ctx, chatSQL.touch, now, now, id)
	if err == nil && n == 0 {
		return noChat(id)
	}
	return err
}

// hold locks existing chats until the end of the transaction.
func (c *Conn) hold(ctx context.Context, ids ...string) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !utf8.ValidString(id) })
	return c.execAll(ctx, chatSQL.hold, ids)
}

// CreateChat implements chat.Store.
func (s *chatStore) CreateChat(ctx context.Context, c chat.Chat) (chat.Chat, error) {
	made, created, err := s.upsert(ctx, c)
	if err == nil && !created {
		return chat.Chat{}, &chat.Error{Subject: chat.SubjectChat, ID: c.ID, Err: chat.ErrExists}
	}
	return made, err
}

// UpsertChat implements chat.Store.
func (s *chatStore) UpsertChat(ctx context.Context, c chat.Chat) (chat.Chat, error) {
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
func (s *chatStore) upsert(ctx context.Context, c chat.Chat) (made chat.Chat, created bool, err error) {
	if err := errors.Join(c.Check(), s.db.checkID(chat.SubjectChat, c.ID), s.db.checkUser(c.UserID)); err != nil {
		return chat.Chat{}, false, err
	}
	err = s.db.Write(ctx, func(conn *Conn) error {
		known, err := conn.chat(ctx, c.ID)
		if err != nil {
			return err
		}
		if created = known == nil; !created {
			made = *known
			return errUnchanged
		}
		at := moment(c.CreatedAt)
		_, err = conn.Exec(ctx, sqlOf[tables.Chats].insert, c.ID, c.UserID, optional(c.Title), jsonText(c.Metadata), at, time.Now().UnixMilli())
		if err != nil {
			return err
		}
		main := chat.Branch{ID: chat.NewID(), ChatID: c.ID, Name: chat.MainBranch, IsActive: true, CreatedAt: at}
		if err := conn.insertBranch(ctx, main); err != nil {
			return err
		}
		known, err = conn.chat(ctx, c.ID)
		if err == nil {
			made = *known
		}
		return err
	})
	return made, created, s.db.storable(err, chat.SubjectChat, c.ID)
}

// Chat implements chat.Store.
func (s *chatStore) Chat(ctx context.Context, id string) (found *chat.Chat, err error) {
	return read(ctx, s.db, func(c *Conn) (*chat.Chat, error) { return c.chat(ctx, id) })
}

// UpdateChat implements chat.Store.
func (s *chatStore) UpdateChat(ctx context.Context, id string, u chat.ChatUpdate) (chat.Chat, error) {
	if err := u.Check(); err != nil {
		return chat.Chat{}, err
	}
	return s.ChangeChat(ctx, id, func(chat.Chat) (chat.ChatUpdate, error) { return u, nil })
}

// ChangeChat implements chat.Store. It locks the chat's row before reading it.
func (s *chatStore) ChangeChat(ctx context.Context, id string, change func(chat.Chat) (chat.ChatUpdate, error)) (changed chat.Chat, err error) {
	var refused error
	err = s.db.Write(ctx, func(c *Conn) error {
		if err := c.hold(ctx, id); err != nil {
			return err
		}
		known, err := c.chat(ctx, id)
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
			err = s.db.checkUser(user)
		}
		if refused = err; refused != nil {
			return errUnchanged
		}
		if u.Title != nil {
			title = *u.Title
		}
		if u.Metadata != nil {
			metadata = u.Metadata
		}
		now := time.Now().UnixMilli()
		if _, err := c.Exec(ctx, chatSQL.update, user, optional(title), jsonText(metadata), now, now, id); err != nil {
			return err
		}
		if known, err = c.chat(ctx, id); err == nil {
			changed = *known
		}
		return err
	})
	if refused != nil {
		return chat.Chat{}, refused
	}
	return changed, s.db.storable(err, chat.SubjectChat, id)
}
