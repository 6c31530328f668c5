package sqladapter

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var checkpointSQL = struct {
	byID, byName, ofChat, remove Statement
}{
	byID:   `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "id" = ? {kept:checkpoints.chatId}`,
	byName: `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "chatId" = ? AND "name" = ? {kept:checkpoints.chatId}`,
	ofChat: `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "chatId" = ? {kept:checkpoints.chatId} ORDER BY "createdAt" DESC, "id" DESC`,
	remove: `DELETE FROM "checkpoints" WHERE "chatId" = ? AND "name" = ? {kept:checkpoints.chatId}`,
}

// CreateCheckpoint implements chat.Store.
func (s *chatStore) CreateCheckpoint(ctx context.Context, k chat.Checkpoint) (chat.Checkpoint, error) {
	if err := errors.Join(k.Check(), s.db.checkID(chat.SubjectCheckpoint, k.ID, k.Name)); err != nil {
		return chat.Checkpoint{}, err
	}
	k.CreatedAt = moment(k.CreatedAt)
	made := k
	err := s.db.Write(ctx, func(c *Conn) error {
		made = k
		if err := c.touch(ctx, k.ChatID); err != nil {
			return err
		}
		if k.MessageID == "" {
			return &chat.Error{Subject: chat.SubjectCheckpoint, ID: k.Name, ChatID: k.ChatID, Err: chat.ErrInvalid, Detail: "no message"}
		}
		if err := c.mustMessage(ctx, k.ChatID, chat.Ref(k.MessageID)); err != nil {
			return err
		}
		known, err := c.checkpointNamed(ctx, k.ChatID, k.Name)
		if err != nil {
			return err
		}
		if known != nil {
			made.ID = known.ID
			_, err = c.Exec(ctx, sqlOf[tables.Checkpoints].update, k.MessageID, k.CreatedAt, known.ID)
			return err
		}
		if made.ID == "" {
			made.ID = chat.NewID()
		}
		rows, err := c.Query(ctx, checkpointSQL.byID, made.ID)
		if known, err = first(rows, err, scanCheckpoint); err != nil {
			return err
		}
		if known != nil {
			return &chat.Error{Subject: chat.SubjectCheckpoint, ID: made.ID, Err: chat.ErrExists}
		}
		return c.insertCheckpoint(ctx, made)
	})
	if err != nil {
		return chat.Checkpoint{}, s.db.storable(err, chat.SubjectCheckpoint, k.Name)
	}
	return made, nil
}

func (c *Conn) insertCheckpoint(ctx context.Context, k chat.Checkpoint) error {
	return c.insert(ctx, sqlOf[tables.Checkpoints].insert, [][]any{checkpointRow(&k)})
}

func (c *Conn) checkpointNamed(ctx context.Context, chatID, name string) (*chat.Checkpoint, error) {
	rows, err := c.Query(ctx, checkpointSQL.byName, chatID, name)
	found, err := first(rows, err, scanCheckpoint)
	if found == nil || found.Name != name || found.ChatID != chatID {
		return nil, err
	}
	return found, err
}

// Checkpoint implements chat.Store.
func (s *chatStore) Checkpoint(ctx context.Context, chatID, name string) (found *chat.Checkpoint, err error) {
	return read(ctx, s.db, func(c *Conn) (*chat.Checkpoint, error) { return c.checkpointNamed(ctx, chatID, name) })
}

// ListCheckpoints implements chat.Store.
func (s *chatStore) ListCheckpoints(ctx context.Context, chatID string) (found []chat.Checkpoint, err error) {
	return readAll(ctx, s.db, scanCheckpoint, checkpointSQL.ofChat, chatID)
}

// DeleteCheckpoint implements chat.Store.
func (s *chatStore) DeleteCheckpoint(ctx context.Context, chatID, name string) error {
	return s.db.Write(ctx, func(c *Conn) error {
		if err := c.touch(ctx, chatID); errors.Is(err, chat.ErrNotFound) {
			return errUnchanged
		} else if err != nil {
			return err
		}
		known, err := c.checkpointNamed(ctx, chatID, name)
		if err != nil {
			return err
		}
		if known == nil {
			return errUnchanged
		}
		_, err = c.Exec(ctx, checkpointSQL.remove, chatID, name)
		return err
	})
}
