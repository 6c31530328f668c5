package chatrows

import (
	"context"
	"database/sql"
	"iter"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

var readSQL = struct {
	messages, chatsOf, branches, checkpoints, messageCounts, branchCounts sqladapter.Statement
}{
	messages: `SELECT m."id", m."chatId", m."parentId", m."name", m."type", m."data", m."createdAt", ` +
		`o."userId", o."modelId", o."sourceId", o."derivedFrom" ` +
		`FROM "messages" m LEFT JOIN "lineage_origins" o ON {same:m.id=o.messageId} WHERE m."id" IN ({list}) {kept:m.chatId}`,
	chatsOf: `SELECT "id", "chatId" FROM "messages" WHERE "id" IN ({list}) {kept:messages.chatId}`,
	branches: `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" ` +
		`WHERE "chatId" = ? {kept:branches.chatId} ORDER BY "createdAt", "id"`,
	checkpoints:   `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "chatId" = ? {kept:checkpoints.chatId} ORDER BY "createdAt" DESC, "id" DESC`,
	messageCounts: `SELECT "chatId", COUNT(*) AS "count" FROM "messages" WHERE "chatId" IN ({list}) GROUP BY "chatId"`,
	branchCounts:  `SELECT "chatId", COUNT(*) AS "count" FROM "branches" WHERE "chatId" IN ({list}) GROUP BY "chatId"`,
}

// ReadBatch is the number of messages read per query.
const ReadBatch = 200

// Edge is a message and its parent.
type Edge struct{ ID, Parent string }

// ScanLink scans a row with an id and a parent that may be null.
func ScanLink(rows *sqladapter.Rows) (Edge, error) {
	var l Edge
	var parent sql.NullString
	err := rows.Scan(&l.ID, &parent)
	l.Parent = parent.String
	return l, err
}

// Messages returns messages by id.
func Messages(ctx context.Context, c *sqladapter.Conn, ids []string) (map[string]chat.Message, error) {
	found := make(map[string]chat.Message, len(ids))
	messages, err := lists.CollectList(ctx, c, ScanMessage, readSQL.messages, ids)
	for _, m := range messages {
		found[m.ID] = m
	}
	return found, err
}

// ChatsOf returns the chats of existing messages.
func ChatsOf(ctx context.Context, c *sqladapter.Conn, ids []string) (map[string]string, error) {
	return lists.CollectMap[string](ctx, c, readSQL.chatsOf, ids)
}

// ReadMessages is Messages outside of a transaction.
func ReadMessages(ctx context.Context, db *sqladapter.DB, ids []string) (found map[string]chat.Message, err error) {
	return lists.Read(ctx, db, func(c *sqladapter.Conn) (map[string]chat.Message, error) { return Messages(ctx, c, ids) })
}

// InOrder yields messages by id, ErrNotFound for those that were deleted.
func InOrder(ctx context.Context, db *sqladapter.DB, ids []string) iter.Seq2[chat.Message, error] {
	return func(yield func(chat.Message, error) bool) {
		for batch := range lists.Batches(ids, ReadBatch) {
			found, err := ReadMessages(ctx, db, batch)
			if err != nil {
				yield(chat.Message{}, err)
				return
			}
			for _, id := range batch {
				m, ok := found[id]
				if !ok {
					err = &chat.Error{Subject: chat.SubjectMessage, ID: id, Err: chat.ErrNotFound, Detail: "deleted while it was read"}
				} else {
					err = nil
				}
				if !yield(m, err) {
					return
				}
			}
		}
	}
}

// Branches returns the branches of a chat, oldest first.
func Branches(ctx context.Context, c *sqladapter.Conn, chatID string) ([]chat.Branch, error) {
	return lists.Collect(ctx, c, ScanBranch, readSQL.branches, chatID)
}

// Checkpoints returns the checkpoints of a chat, newest first.
func Checkpoints(ctx context.Context, c *sqladapter.Conn, chatID string) ([]chat.Checkpoint, error) {
	return lists.Collect(ctx, c, ScanCheckpoint, readSQL.checkpoints, chatID)
}

// MessageCounts returns the numbers of messages of chats.
func MessageCounts(ctx context.Context, c *sqladapter.Conn, chats []string) (map[string]int, error) {
	return lists.CollectMap[int](ctx, c, readSQL.messageCounts, chats)
}

// BranchCounts returns the numbers of branches of chats.
func BranchCounts(ctx context.Context, c *sqladapter.Conn, chats []string) (map[string]int, error) {
	return lists.CollectMap[int](ctx, c, readSQL.branchCounts, chats)
}
