package chatrows

import (
	"context"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

var deleteSQL = struct {
	checkpoints, branches, origins, messages, chat sqladapter.Statement
}{
	checkpoints: `DELETE FROM "checkpoints" WHERE "chatId" = ?`,
	branches:    `DELETE FROM "branches" WHERE "chatId" = ?`,
	origins:     `DELETE FROM "lineage_origins" WHERE "messageId" IN (SELECT m."id" {exactly} FROM "messages" m WHERE m."chatId" = ?)`,
	messages:    `DELETE FROM "messages" WHERE "chatId" = ?`,
	chat:        `DELETE FROM "chats" WHERE "id" = ?`,
}

// DeleteMessages deletes messages and all rows that belong to them.
func DeleteMessages(ctx context.Context, c *sqladapter.Conn, ids []string) error {
	for _, s := range []sqladapter.Statement{tables.Origins.Remove, indexSQL.remove, tables.Messages.Remove} {
		if err := lists.ExecList(ctx, c, s, ids); err != nil {
			return err
		}
	}
	return nil
}

// DeleteCheckpoints deletes the checkpoints of a chat.
func DeleteCheckpoints(ctx context.Context, c *sqladapter.Conn, chatID string) error {
	_, err := c.Exec(ctx, deleteSQL.checkpoints, chatID)
	return err
}

// DeleteChat deletes a chat with everything in it, in a constant number of statements.
func DeleteChat(ctx context.Context, c *sqladapter.Conn, id string) error {
	if err := unindexChat(ctx, c, id); err != nil {
		return err
	}
	for _, s := range []sqladapter.Statement{deleteSQL.checkpoints, deleteSQL.branches, deleteSQL.origins, deleteSQL.messages, deleteSQL.chat} {
		if _, err := c.Exec(ctx, s, id); err != nil {
			return err
		}
	}
	return nil
}
