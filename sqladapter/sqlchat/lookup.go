package sqlchat

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

var lookupSQL = struct {
	chat, touch, hold, message, chain, branch, branchNamed, checkpointNamed sqladapter.Statement
}{
	chat:  `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE "id" = ? {kept:chats.id}`,
	touch: `UPDATE "chats" SET "updatedAt" = CASE WHEN "updatedAt" >= ? THEN "updatedAt" + 1 ELSE ? END WHERE "id" = ? {kept:chats.id}`,
	hold:  `UPDATE "chats" SET "updatedAt" = "updatedAt" WHERE "id" IN ({list})`,
	message: `SELECT m."id", m."chatId", m."parentId", m."name", m."type", m."data", m."createdAt", ` +
		`o."userId", o."modelId", o."sourceId", o."derivedFrom" ` +
		`FROM "messages" m LEFT JOIN "lineage_origins" o ON {same:m.id=o.messageId} WHERE m."id" = ? {kept:m.chatId}`,
	chain: `WITH {recursive} "chain" ("id", "parentId", "step") AS (` +
		`SELECT "id", "parentId", 1 FROM "messages" WHERE "id" = ? AND "chatId" = ? {kept:messages.chatId} ` +
		`UNION ALL ` +
		`SELECT m."id", m."parentId", c."step" + 1 FROM "chain" c JOIN "messages" m ON m."id" = c."parentId" WHERE m."chatId" = ? AND c."step" < ?` +
		`) SELECT "id", "parentId" FROM "chain" ORDER BY "step" {unlimited}`,
	branch:          `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" WHERE "id" = ? {kept:branches.chatId}`,
	branchNamed:     `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" WHERE "chatId" = ? AND "name" = ? {kept:branches.chatId}`,
	checkpointNamed: `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "chatId" = ? AND "name" = ? {kept:checkpoints.chatId}`,
}

// noChat is the error for a chat that does not exist.
func noChat(id string) error {
	return &chat.Error{Subject: chat.SubjectChat, ID: id, Err: chat.ErrNotFound}
}

// chatByID returns a chat, nil if there is none.
func chatByID(ctx context.Context, c *sqladapter.Conn, id string) (*chat.Chat, error) {
	found, err := lists.First(ctx, c, chatrows.ScanChat, lookupSQL.chat, id)
	if found == nil || found.ID != id { // the database may treat different ids as equal
		return nil, err
	}
	return found, err
}

// touch sets the update time of a chat to now. It locks the chat until the end of the transaction.
func touch(ctx context.Context, c *sqladapter.Conn, id string) error {
	if !utf8.ValidString(id) {
		return noChat(id)
	}
	if c.Dialect().Limits().Loose {
		if found, err := chatByID(ctx, c, id); err != nil || found == nil {
			return cmp.Or(err, noChat(id))
		}
	}
	now := time.Now().UnixMilli()
	n, err := c.Exec(ctx, lookupSQL.touch, now, now, id)
	if err == nil && n == 0 {
		return noChat(id)
	}
	return err
}

// hold locks chats that exist until the end of the transaction.
func hold(ctx context.Context, c *sqladapter.Conn, ids ...string) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !utf8.ValidString(id) })
	return lists.ExecList(ctx, c, lookupSQL.hold, ids)
}

// otherChat is the error for a message of another chat.
func otherChat(chatID, id string) error {
	return &chat.Error{Subject: chat.SubjectMessage, ID: id, ChatID: chatID, Err: chat.ErrOtherChat}
}

// messageOf returns a message of a chat, nil if there is none.
func messageOf(ctx context.Context, c *sqladapter.Conn, chatID, id string) (*chat.Message, error) {
	found, err := lists.First(ctx, c, chatrows.ScanMessage, lookupSQL.message, id)
	if found == nil || found.ID != id {
		return nil, err
	}
	if found.ChatID != chatID {
		return nil, otherChat(chatID, id)
	}
	return found, err
}

// hasMessage reports whether a message is in a chat.
func hasMessage(ctx context.Context, c *sqladapter.Conn, chatID, id string) (bool, error) {
	chats, err := chatrows.ChatsOf(ctx, c, []string{id})
	found, in := chats[id]
	if in && found != chatID {
		return false, otherChat(chatID, id)
	}
	return in, err
}

// mustMessage returns an error if a message is not in a chat. An empty id is allowed.
func mustMessage(ctx context.Context, c *sqladapter.Conn, chatID string, id chat.Ref) error {
	if id == "" {
		return nil
	}
	found, err := hasMessage(ctx, c, chatID, string(id))
	if err == nil && !found {
		err = &chat.Error{Subject: chat.SubjectMessage, ID: string(id), ChatID: chatID, Err: chat.ErrNotFound}
	}
	return err
}

// mustKnowSources refuses messages that are derived from a message that is not in the chat.
func mustKnowSources(ctx context.Context, c *sqladapter.Conn, messages []chat.Message) error {
	for _, m := range messages {
		err := mustMessage(ctx, c, m.ChatID, chat.Ref(m.Origin.DerivedFrom))
		if errors.Is(err, chat.ErrNotFound) || errors.Is(err, chat.ErrOtherChat) {
			if _, notContent := content.ParseID(m.Origin.DerivedFrom); notContent == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// branchByID returns a branch, nil if there is none.
func branchByID(ctx context.Context, c *sqladapter.Conn, id string) (*chat.Branch, error) {
	found, err := lists.First(ctx, c, chatrows.ScanBranch, lookupSQL.branch, id)
	if found == nil || found.ID != id {
		return nil, err
	}
	return found, err
}

// mustBranch returns a branch of a chat, or an error if there is none.
func mustBranch(ctx context.Context, c *sqladapter.Conn, chatID, id string) (*chat.Branch, error) {
	b, err := branchByID(ctx, c, id)
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil, &chat.Error{Subject: chat.SubjectBranch, ID: id, ChatID: chatID, Err: chat.ErrNotFound}
	case b.ChatID != chatID:
		return nil, &chat.Error{Subject: chat.SubjectBranch, ID: id, ChatID: chatID, Err: chat.ErrOtherChat}
	}
	return b, nil
}

// branchNamed returns a branch of a chat, nil if there is none.
func branchNamed(ctx context.Context, c *sqladapter.Conn, chatID, name string) (*chat.Branch, error) {
	found, err := lists.First(ctx, c, chatrows.ScanBranch, lookupSQL.branchNamed, chatID, name)
	if found == nil || found.Name != name || found.ChatID != chatID {
		return nil, err
	}
	return found, err
}

// checkpointNamed returns a checkpoint of a chat, nil if there is none.
func checkpointNamed(ctx context.Context, c *sqladapter.Conn, chatID, name string) (*chat.Checkpoint, error) {
	found, err := lists.First(ctx, c, chatrows.ScanCheckpoint, lookupSQL.checkpointNamed, chatID, name)
	if found == nil || found.Name != name || found.ChatID != chatID {
		return nil, err
	}
	return found, err
}

// chainStep is the number of messages of a chain that one statement reads.
const chainStep = 10_000

// chainOf returns the ids from the root to a message of a chat, none if the message does not exist.
func chainOf(ctx context.Context, c *sqladapter.Conn, chatID, id string) ([]string, error) {
	var ids []string
	for w := (climb{chatID: chatID, at: id}); w.at != ""; {
		links, err := w.read(ctx, c, chainStep)
		if err != nil {
			return nil, err
		}
		part, err := w.pass(links)
		if err != nil {
			return nil, err
		}
		ids = append(ids, part...)
	}
	slices.Reverse(ids)
	return ids, nil
}

// climb reads the path from a message to the root of its chat.
type climb struct {
	chatID string
	at     string // the next message, empty after the root
	seen   map[string]bool
}

// read returns the next n messages, fewer at the root. It returns none if the message does not exist.
func (w *climb) read(ctx context.Context, c *sqladapter.Conn, n int) ([]chatrows.Edge, error) {
	return lists.Collect(ctx, c, chatrows.ScanLink, lookupSQL.chain, w.at, w.chatID, w.chatID, n)
}

// pass moves on after the messages that were read, and returns their ids.
func (w *climb) pass(links []chatrows.Edge) (ids []string, err error) {
	w.at = ""
	if len(links) > 0 {
		w.at = links[len(links)-1].Parent
	}
	if w.at != "" && w.seen == nil {
		w.seen = make(map[string]bool)
	}
	for _, l := range links {
		if ids = append(ids, l.ID); w.seen == nil {
			continue
		}
		if w.seen[l.ID] {
			return nil, &sqladapter.TableError{Table: "messages", Err: sqladapter.ErrCorrupt, Detail: "message " + l.ID + " is its own ancestor"}
		}
		w.seen[l.ID] = true
	}
	return ids, nil
}
