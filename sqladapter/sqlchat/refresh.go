package sqlchat

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

var refreshSQL = struct {
	counts, counted, unknown, behind, behindOfUser, countedBehind, countedBehindOfUser sqladapter.Statement
	forgetGone, recount, countedSizes                                                  sqladapter.Statement
}{
	counts: `SELECT (SELECT COUNT(*) FROM "lineage_messages" WHERE "chatId" = ?) AS "known", ` +
		`(SELECT COUNT(*) FROM "messages" WHERE "chatId" = ?) AS "messages", ` +
		`(SELECT COUNT(*) FROM "messages" m JOIN "lineage_messages" k ON {same:m.id=k.messageId} {current:k} ` +
		`WHERE m."chatId" = ?) AS "current"`,
	counted: `SELECT "known", "messages" FROM "lineage_chats" WHERE "chatId" = ?`,
	unknown: `SELECT m."id", {version} AS "version" FROM "messages" m WHERE m."chatId" IN ({list}) ` +
		`AND NOT EXISTS (SELECT 1 FROM "lineage_messages" k WHERE {same:m.id=k.messageId} {current:k})`,
	behind: `SELECT m."chatId" {exactly} AS "chatId" FROM "messages" m ` +
		`WHERE NOT EXISTS (SELECT 1 FROM "lineage_messages" k WHERE {same:m.id=k.messageId} {current:k}) ` +
		`UNION SELECT k."chatId" FROM "lineage_messages" k ` +
		`WHERE NOT EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=k.messageId} {current:k})`,
	behindOfUser: `SELECT m."chatId" {exactly} AS "chatId" FROM "chats" c JOIN "messages" m ON m."chatId" = c."id" WHERE c."userId" = ? ` +
		`AND NOT EXISTS (SELECT 1 FROM "lineage_messages" k WHERE {same:m.id=k.messageId} {current:k}) ` +
		`UNION SELECT k."chatId" FROM "chats" c JOIN "lineage_messages" k ON {same:c.id=k.chatId} WHERE c."userId" = ? ` +
		`AND NOT EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=k.messageId} {current:k})`,
	countedBehind: `SELECT "chatId" FROM "lineage_chats" WHERE "known" <> "messages"`,
	countedBehindOfUser: `SELECT k."chatId" FROM "chats" c JOIN "lineage_chats" k ON k."chatId" = c."id" ` +
		`WHERE c."userId" = ? AND k."known" <> k."messages"`,
	forgetGone: `DELETE FROM "lineage_messages" WHERE "chatId" IN ({list}) ` +
		`AND NOT EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=lineage_messages.messageId} {current:lineage_messages})`,
	recount: `INSERT OR REPLACE INTO "lineage_chats" ("chatId", "messages", "known") SELECT i."chatId", ` +
		`(SELECT COUNT(*) FROM "messages" m WHERE m."chatId" = i."chatId"), ` +
		`(SELECT COUNT(*) FROM "lineage_messages" k WHERE k."chatId" = i."chatId") ` +
		`FROM (SELECT "chatId" FROM "lineage_chats" WHERE "chatId" IN ({list}) ` +
		`UNION SELECT "chatId" FROM "messages" WHERE "chatId" IN ({list})) i`,
	countedSizes: `SELECT "chatId", "messages" FROM "lineage_chats" WHERE "chatId" IN ({list})`,
}

// refreshChat indexes what other programs have written to a chat, and removes index rows of what they have deleted or
// overwritten. It returns the messages that cannot be indexed because the database is not writable, and the number of
// messages.
func refreshChat(ctx context.Context, db *sqladapter.DB, chatID string) (unknown []string, messages int, err error) {
	differs := false
	err = db.Read(ctx, func(c *sqladapter.Conn) (err error) {
		differs = false
		known, current := 0, 0
		if db.Dialect().Search().Counted {
			if _, err := c.Get(ctx, refreshSQL.counted, []any{chatID}, &known, &messages); err != nil || known == messages {
				return err
			}
			differs = true // at least the counts differ
		}
		_, err = c.Get(ctx, refreshSQL.counts, []any{chatID, chatID, chatID}, &known, &messages, &current)
		if err != nil || known == messages && current == messages {
			return err
		}
		differs = true
		return nil
	})
	if err != nil || !differs {
		return nil, messages, err
	}
	if messages > refreshedMessages {
		// Other errors are ignored: the transaction below refreshes what is left, or fails as well.
		if err := refreshInParts(ctx, db, chatID); ctx.Err() != nil {
			return nil, messages, err
		}
	}
	const write = true
	unknown, _, err = refreshChats(ctx, db, []string{chatID}, write)
	return unknown, messages, err
}

// refreshPart is the number of messages of a large chat indexed per transaction.
const refreshPart = 500

// refreshInParts indexes a chat in several transactions, so that other programs can write in between. Parents come
// first, so that the lengths of chains are known.
func refreshInParts(ctx context.Context, db *sqladapter.DB, chatID string) error {
	var ids []string
	err := db.Read(ctx, func(c *sqladapter.Conn) error {
		unknown, err := lists.CollectList(ctx, c, chatrows.ScanLink, refreshSQL.unknown, []string{chatID})
		if err != nil {
			return err
		}
		depths, err := chatrows.AllDepths(ctx, c, []string{chatID})
		if err != nil {
			return err
		}
		ids = ids[:0]
		for _, l := range unknown {
			ids = append(ids, l.ID)
		}
		slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(depths[a], depths[b]) })
		return nil
	})
	for part := range lists.Batches(ids, refreshPart) {
		if err == nil {
			err = chatrows.Write(ctx, db, func(c *sqladapter.Conn) error { return refreshSome(ctx, c, chatID, part) })
		}
	}
	return err
}

// refreshSome indexes messages, except those that do not belong to the chat.
func refreshSome(ctx context.Context, c *sqladapter.Conn, chatID string, ids []string) error {
	if err := hold(ctx, c, chatID); err != nil {
		return err
	}
	var versions map[string]string
	if !c.Dialect().Search().Counted {
		var err error
		if versions, err = chatrows.Versions(ctx, c, ids); err != nil {
			return err
		}
	}
	messages, err := unindexed(ctx, c, ids)
	if err != nil {
		return err
	}
	messages = slices.DeleteFunc(messages, func(m chat.Message) bool { return m.ChatID != chatID })
	depths, err := chatrows.DepthsOfNew(ctx, c, messages)
	if err != nil {
		return err
	}
	const texts = false
	return chatrows.Index(ctx, c, messages, depths, versions, texts)
}

// unindexed returns the messages with the given ids, in order, and deletes their index rows.
func unindexed(ctx context.Context, c *sqladapter.Conn, ids []string) ([]chat.Message, error) {
	found, err := chatrows.Messages(ctx, c, ids)
	if err != nil {
		return nil, err
	}
	messages := make([]chat.Message, 0, len(ids))
	for _, id := range ids {
		if m, ok := found[id]; ok {
			messages = append(messages, m)
		}
	}
	return messages, chatrows.Unindex(ctx, c, ids)
}

// refreshedMessages and refreshedChats limit the messages, approximately, and the chats that one
// transaction indexes.
const refreshedMessages, refreshedChats = 5000, lists.Max

// refreshAll is like refreshChat, for all chats, or those of a user if userID is not empty.
func refreshAll(ctx context.Context, db *sqladapter.DB, userID string) (unknown []string, err error) {
	chats, err := behind(ctx, db, userID)
	if err != nil {
		return nil, err
	}
	sizes, err := sizesOf(ctx, db, chats)
	if err != nil {
		return nil, err
	}
	for writable := true; len(chats) > 0; {
		n, messages := 0, 0
		for n < len(chats) && n < refreshedChats && messages < refreshedMessages {
			messages += sizes[chats[n]]
			n++
		}
		if writable && n == 1 && messages > refreshedMessages {
			if err := refreshInParts(ctx, db, chats[0]); ctx.Err() != nil {
				return nil, err
			}
		}
		var some []string
		if some, writable, err = refreshChats(ctx, db, chats[:n], writable); err != nil {
			return nil, err
		}
		unknown = append(unknown, some...)
		chats = chats[n:]
	}
	return unknown, nil
}

// behind returns the chats that other programs may have written to, of all users or one.
func behind(ctx context.Context, db *sqladapter.DB, userID string) (chats []string, err error) {
	counted := db.Dialect().Search().Counted
	statement, args := refreshSQL.behind, []any(nil)
	switch {
	case counted && userID != "":
		statement, args = refreshSQL.countedBehindOfUser, []any{userID}
	case counted:
		statement = refreshSQL.countedBehind
	case userID != "":
		statement, args = refreshSQL.behindOfUser, []any{userID, userID}
	}
	return lists.ReadAll(ctx, db, lists.ScanString, statement, args...)
}

// sizesOf returns the numbers of messages of chats.
func sizesOf(ctx context.Context, db *sqladapter.DB, chats []string) (sizes map[string]int, err error) {
	return lists.Read(ctx, db, func(c *sqladapter.Conn) (map[string]int, error) {
		if db.Dialect().Search().Counted {
			return lists.CollectMap[int](ctx, c, refreshSQL.countedSizes, chats)
		}
		return chatrows.MessageCounts(ctx, c, chats)
	})
}

// refreshChats indexes, in one transaction, what other programs have written to chats, if write is set. It returns
// what is still not indexed, and whether further writes may succeed.
func refreshChats(ctx context.Context, db *sqladapter.DB, chats []string, write bool) (unknown []string, writable bool, err error) {
	if write {
		err = chatrows.Write(ctx, db, func(c *sqladapter.Conn) error {
			return refresh(ctx, c, chats)
		})
		switch {
		case err == nil:
			return nil, true, nil
		case ctx.Err() != nil:
			return nil, false, err
		}
		writable = errors.Is(err, sqladapter.ErrCorrupt)
		if writable && len(chats) > 1 { // one of the chats is corrupt
			return refreshHalves(ctx, db, chats)
		}
	}
	unknown, err = unknownMessages(ctx, db, chats)
	return unknown, writable, err
}

// refreshHalves is like refreshChats, with a transaction for each half of the chats.
func refreshHalves(ctx context.Context, db *sqladapter.DB, chats []string) (unknown []string, writable bool, err error) {
	writable = true
	half := len(chats) / 2
	for _, part := range [][]string{chats[:half], chats[half:]} {
		var partUnknown []string
		if partUnknown, writable, err = refreshChats(ctx, db, part, writable); err != nil {
			return nil, false, err
		}
		unknown = append(unknown, partUnknown...)
	}
	return unknown, writable, nil
}

// unknownMessages returns the ids of messages of chats that are not indexed.
func unknownMessages(ctx context.Context, db *sqladapter.DB, chats []string) (ids []string, err error) {
	links, err := lists.Read(ctx, db, func(c *sqladapter.Conn) ([]chatrows.Edge, error) {
		return lists.CollectList(ctx, c, chatrows.ScanLink, refreshSQL.unknown, chats)
	})
	for _, l := range links {
		ids = append(ids, l.ID)
	}
	return ids, err
}

// refresh indexes what other programs have written to chats, and removes index rows of what they have deleted or
// overwritten.
func refresh(ctx context.Context, c *sqladapter.Conn, chats []string) error {
	if err := hold(ctx, c, chats...); err != nil {
		return err
	}
	if err := lists.ExecList(ctx, c, refreshSQL.forgetGone, chats); err != nil {
		return err
	}
	unknown, err := lists.CollectList(ctx, c, chatrows.ScanLink, refreshSQL.unknown, chats)
	if err != nil {
		return err
	}
	counted := c.Dialect().Search().Counted
	var depths chatrows.NewDepths
	if len(unknown) > 0 {
		if depths, err = chatrows.DepthsInChats(ctx, c, chats); err != nil {
			return err
		}
	}
	for batch := range lists.Batches(unknown, chatrows.ReadBatch) {
		ids, versions := make([]string, len(batch)), make(map[string]string, len(batch))
		for i, l := range batch {
			ids[i], versions[l.ID] = l.ID, l.Parent
		}
		messages, err := unindexed(ctx, c, ids)
		if err != nil {
			return err
		}
		const texts = false
		if err := chatrows.Index(ctx, c, messages, depths, versions, texts); err != nil {
			return err
		}
	}
	if !counted {
		return nil
	}
	for batch := range lists.Batches(chats, lists.Max) {
		args := lists.Padded(batch)
		if _, err := c.ExecN(ctx, refreshSQL.recount, len(args), append(args, args...)...); err != nil {
			return err
		}
	}
	return nil
}
