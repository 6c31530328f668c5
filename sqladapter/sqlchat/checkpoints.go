package sqlchat

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var checkpointSQL = struct {
	byID, remove sqladapter.Statement
}{
	byID:   `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "id" = ? {kept:checkpoints.chatId}`,
	remove: `DELETE FROM "checkpoints" WHERE "chatId" = ? AND "name" = ? {kept:checkpoints.chatId}`,
}

// CreateCheckpoint implements chat.Store.
func (s *store) CreateCheckpoint(ctx context.Context, k chat.Checkpoint) (chat.Checkpoint, error) {
	if err := errors.Join(k.Check(), chatrows.CheckID(s.db, chat.SubjectCheckpoint, k.ID, k.Name)); err != nil {
		return chat.Checkpoint{}, err
	}
	k.CreatedAt = moment(k.CreatedAt)
	made := k
	err := chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		made = k
		if err := touch(ctx, c, k.ChatID); err != nil {
			return err
		}
		if k.MessageID == "" {
			return &chat.Error{Subject: chat.SubjectCheckpoint, ID: k.Name, ChatID: k.ChatID, Err: chat.ErrInvalid, Detail: "no message"}
		}
		if err := mustMessage(ctx, c, k.ChatID, chat.Ref(k.MessageID)); err != nil {
			return err
		}
		known, err := checkpointNamed(ctx, c, k.ChatID, k.Name)
		if err != nil {
			return err
		}
		if known != nil {
			made.ID = known.ID
			_, err = c.Exec(ctx, tables.Checkpoints.Update, k.MessageID, k.CreatedAt, known.ID)
			return err
		}
		if made.ID == "" {
			made.ID = chat.NewID()
		}
		if known, err = lists.First(ctx, c, chatrows.ScanCheckpoint, checkpointSQL.byID, made.ID); err != nil {
			return err
		}
		if known != nil {
			return &chat.Error{Subject: chat.SubjectCheckpoint, ID: made.ID, Err: chat.ErrExists}
		}
		return insertCheckpoint(ctx, c, made)
	})
	if err != nil {
		return chat.Checkpoint{}, storable(s.db, err, chat.SubjectCheckpoint, k.Name)
	}
	return made, nil
}

// insertCheckpoint inserts the row of a checkpoint.
func insertCheckpoint(ctx context.Context, c *sqladapter.Conn, k chat.Checkpoint) error {
	return lists.Insert(ctx, c, tables.Checkpoints.Insert, [][]any{chatrows.CheckpointRow(&k)})
}

// Checkpoint implements chat.Store.
func (s *store) Checkpoint(ctx context.Context, chatID, name string) (found *chat.Checkpoint, err error) {
	return lists.Read(ctx, s.db, func(c *sqladapter.Conn) (*chat.Checkpoint, error) { return checkpointNamed(ctx, c, chatID, name) })
}

// ListCheckpoints implements chat.Store.
func (s *store) ListCheckpoints(ctx context.Context, chatID string) (found []chat.Checkpoint, err error) {
	return lists.Read(ctx, s.db, func(c *sqladapter.Conn) ([]chat.Checkpoint, error) { return chatrows.Checkpoints(ctx, c, chatID) })
}

// DeleteCheckpoint implements chat.Store.
func (s *store) DeleteCheckpoint(ctx context.Context, chatID, name string) error {
	return chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error {
		if err := touch(ctx, c, chatID); errors.Is(err, chat.ErrNotFound) {
			return sqladapter.ErrUnchanged
		} else if err != nil {
			return err
		}
		known, err := checkpointNamed(ctx, c, chatID, name)
		if err != nil {
			return err
		}
		if known == nil {
			return sqladapter.ErrUnchanged
		}
		_, err = c.Exec(ctx, checkpointSQL.remove, chatID, name)
		return err
	})
}
