package sqladapter

import (
	"context"
	"database/sql"
	"slices"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// lineage_messages has data derived from messages: that for searches and, if triggers maintain it,
// the length of the message's chain. Other programs do not write it; missing rows are created when
// needed.

var knownSQL = struct {
	counts, depths, above, unknown, versions, forget, remove         Statement
	lastRow, lastTextRow, removeTexts, removeTerms, removeOtherTexts Statement
	textCount, behind, behindOfUser, forgetGone                      Statement
	countedBehindOfUser                                              Statement
	counted, countedBehind, countedSizes, recount, uncount           Statement
}{
	counts: `SELECT (SELECT COUNT(*) FROM "lineage_messages" WHERE "chatId" = ?) AS "known", ` +
		`(SELECT COUNT(*) FROM "messages" WHERE "chatId" = ?) AS "messages", ` +
		`(SELECT COUNT(*) FROM "messages" m JOIN "lineage_messages" k ON {same:m.id=k.messageId} {current:k} ` +
		`WHERE m."chatId" = ?) AS "current"`,
	depths: `SELECT "messageId", "depth" FROM "lineage_messages" WHERE "messageId" IN ({list})`,
	above: `WITH {recursive} "above" ("parentId", "depth", "step") AS (` +
		`SELECT m."parentId", k."depth", 1 FROM "messages" m LEFT JOIN "lineage_messages" k ON {same:m.id=k.messageId} WHERE m."id" = ? AND m."chatId" = ? ` +
		`UNION ALL ` +
		`SELECT m."parentId", k."depth", a."step" + 1 FROM "above" a JOIN "messages" m ON m."id" = a."parentId" ` +
		`LEFT JOIN "lineage_messages" k ON {same:m.id=k.messageId} WHERE a."depth" IS NULL AND a."step" < ? AND m."chatId" = ?` +
		`) SELECT "depth", "step" FROM "above" ORDER BY "step" DESC {limit}`,
	unknown: `SELECT m."id", {version} AS "version" FROM "messages" m WHERE m."chatId" IN ({list}) ` +
		`AND NOT EXISTS (SELECT 1 FROM "lineage_messages" k WHERE {same:m.id=k.messageId} {current:k})`,
	versions: `SELECT m."id", {version} AS "version" FROM "messages" m WHERE m."id" IN ({list})`,
	behind: `SELECT m."chatId" {exactly} AS "chatId" FROM "messages" m ` +
		`WHERE NOT EXISTS (SELECT 1 FROM "lineage_messages" k WHERE {same:m.id=k.messageId} {current:k}) ` +
		`UNION SELECT k."chatId" FROM "lineage_messages" k ` +
		`WHERE NOT EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=k.messageId} {current:k})`,
	behindOfUser: `SELECT m."chatId" {exactly} AS "chatId" FROM "chats" c JOIN "messages" m ON m."chatId" = c."id" WHERE c."userId" = ? ` +
		`AND NOT EXISTS (SELECT 1 FROM "lineage_messages" k WHERE {same:m.id=k.messageId} {current:k}) ` +
		`UNION SELECT k."chatId" FROM "chats" c JOIN "lineage_messages" k ON {same:c.id=k.chatId} WHERE c."userId" = ? ` +
		`AND NOT EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=k.messageId} {current:k})`,
	forgetGone: `DELETE FROM "lineage_messages" WHERE "chatId" IN ({list}) ` +
		`AND NOT EXISTS (SELECT 1 FROM "messages" m WHERE {same:m.id=lineage_messages.messageId} {current:lineage_messages})`,
	forget: `DELETE FROM "lineage_messages" WHERE "chatId" = ?`,
	remove: `DELETE FROM "lineage_messages" WHERE "messageId" IN ({list})`,

	lastRow:          `SELECT "row" FROM "lineage_messages" ORDER BY "row" DESC {limit}`,
	lastTextRow:      `SELECT "rowid" FROM "messages_fts" ORDER BY "rowid" DESC {limit}`,
	removeTexts:      `DELETE FROM "messages_fts" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "chatId" = ? AND "hasText" = 1)`,
	removeTerms:      `DELETE FROM "lineage_terms" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "chatId" = ?)`,
	removeOtherTexts: `DELETE FROM "messages_fts" WHERE "chatId" = ?`,
	counted:          `SELECT "known", "messages" FROM "lineage_chats" WHERE "chatId" = ?`,
	countedBehind:    `SELECT "chatId" FROM "lineage_chats" WHERE "known" <> "messages"`,
	countedBehindOfUser: `SELECT k."chatId" FROM "chats" c JOIN "lineage_chats" k ON k."chatId" = c."id" ` +
		`WHERE c."userId" = ? AND k."known" <> k."messages"`,
	countedSizes: `SELECT "chatId", "messages" FROM "lineage_chats" WHERE "chatId" IN ({list})`,
	uncount:      `DELETE FROM "lineage_chats" WHERE "chatId" = ?`,
	recount: `INSERT OR REPLACE INTO "lineage_chats" ("chatId", "messages", "known") SELECT i."chatId", ` +
		`(SELECT COUNT(*) FROM "messages" m WHERE m."chatId" = i."chatId"), ` +
		`(SELECT COUNT(*) FROM "lineage_messages" k WHERE k."chatId" = i."chatId") ` +
		`FROM (SELECT "chatId" FROM "lineage_chats" WHERE "chatId" IN ({list}) ` +
		`UNION SELECT "chatId" FROM "messages" WHERE "chatId" IN ({list})) i`,

	textCount: `SELECT COUNT(*) AS "count" FROM "lineage_messages" WHERE "chatId" = ? AND "hasText" = 1`,
}

// depths returns the chain lengths of those of some messages that are in a chat. For one message of another
// program it follows the chain to an indexed message. If that is far away, for several such messages, and if
// lengths are not stored, it reads the whole chat.
func (c *Conn) depths(ctx context.Context, chatID string, ids []string) (map[string]int, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if !c.db.dialect.Search().Counted {
		return c.allDepths(ctx, []string{chatID})
	}
	depths, err := collectMap[int](ctx, c, knownSQL.depths, ids)
	if err != nil {
		return nil, err
	}
	unknown := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return depths[id] > 0 })
	if len(unknown) == 0 {
		return depths, nil
	}
	if len(unknown) == 1 {
		depth, near, err := c.depth(ctx, chatID, unknown[0])
		if near || err != nil {
			depths[unknown[0]] = depth
			return depths, err
		}
	}
	return c.allDepths(ctx, []string{chatID})
}

// depthSteps is the number of messages after an indexed one that depth follows.
const depthSteps = 1000

// depth returns the chain length of a message that is not indexed, 0 if it is not in the chat. near is false
// if no indexed message is near.
func (c *Conn) depth(ctx context.Context, chatID, id string) (depth int, near bool, err error) {
	var above sql.NullInt64
	steps := 0
	if _, err := c.Get(ctx, knownSQL.above, []any{id, chatID, depthSteps, chatID, 1}, &above, &steps); err != nil {
		return 0, false, err
	}
	if above.Valid {
		return steps - 1 + int(above.Int64), true, nil
	}
	return steps, steps < depthSteps, nil
}

// insertMessages inserts messages, parents first, with all rows that belong to them. It does not
// check them.
func (c *Conn) insertMessages(ctx context.Context, messages []chat.Message) error {
	// Before the rows exist: indexing a chat is for messages of other programs.
	depths, err := c.newDepths(ctx, messages)
	if err != nil {
		return err
	}
	if err := c.insert(ctx, sqlOf[tables.Messages].insert, messageRows(messages)); err != nil {
		return err
	}
	if err := c.insertOrigins(ctx, messages); err != nil {
		return err
	}
	return c.knowOwn(ctx, messages, depths)
}

// knowOwn indexes messages that this transaction has written, with their texts.
func (c *Conn) knowOwn(ctx context.Context, messages []chat.Message, depths map[string]int) error {
	search := c.db.dialect.Search()
	var versions map[string]string
	if !search.Counted {
		ids := make([]string, len(messages))
		for i, m := range messages {
			ids[i] = m.ID
		}
		var err error
		if versions, err = collectMap[string](ctx, c, knownSQL.versions, ids); err != nil {
			return err
		}
		if search.Unlinked {
			if err := c.forgetKnown(ctx, ids); err != nil {
				return err
			}
		}
	}
	return c.know(ctx, messages, depths, versions, true)
}

// know indexes existing messages, with their texts unless another program wrote them. Versions must
// have been read before the messages: then a message overwritten in between counts as not indexed.
func (c *Conn) know(ctx context.Context, messages []chat.Message, depths map[string]int, versions map[string]string, texts bool) error {
	search := c.db.dialect.Search()
	row := int64(0)
	if search.Numbered {
		var err error
		if row, err = c.lastRow(ctx); err != nil {
			return err
		}
	}
	var known, textRows, terms [][]any
	indexed := indexAll(messages)
	for i, m := range messages {
		text, words := indexed[i].text, indexed[i].terms
		if search.Numbered {
			row++
			known = append(known, []any{m.ID, m.ChatID, depths[m.ID], row, texts, indexed[i].card})
			terms = append(terms, []any{row, words})
			textRows = append(textRows, []any{row, m.ID, m.ChatID, m.Name, c.db.fitting(text)})
			continue
		}
		card := any(indexed[i].card)
		if c.db.syntax.Bytes != nil {
			card = c.db.syntax.Bytes(indexed[i].card)
		}
		known = append(known, []any{m.ID, m.ChatID, versions[m.ID], words, card})
		textRows = append(textRows, []any{m.ID, m.ChatID, m.Name, c.db.fitting(text)})
	}
	if err := c.insert(ctx, search.Known, known); err != nil {
		return err
	}
	if err := c.insert(ctx, search.Terms, terms); err != nil {
		return err
	}
	if !texts {
		return nil
	}
	return c.insert(ctx, search.Texts, textRows)
}

// forgetKnown deletes the index rows for these ids: those of earlier messages that another program
// has deleted or moved to another chat.
func (c *Conn) forgetKnown(ctx context.Context, ids []string) error {
	return c.execAll(ctx, knownSQL.remove, ids)
}

// newDepths returns the chain lengths of messages whose parents come before them or exist already,
// if lengths are stored.
func (c *Conn) newDepths(ctx context.Context, messages []chat.Message) (map[string]int, error) {
	if !c.db.dialect.Search().Counted {
		return nil, nil
	}
	depths := make(map[string]int, len(messages))
	own := make(map[string]bool, len(messages))
	parents := make(map[string][]string) // existing ones, by chat
	for _, m := range messages {
		if m.ParentID != "" && !own[string(m.ParentID)] {
			parents[m.ChatID] = append(parents[m.ChatID], string(m.ParentID))
		}
		own[m.ID] = true
	}
	for chatID, ids := range parents {
		above, err := c.depths(ctx, chatID, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			depths[id] = above[id]
		}
	}
	for _, m := range messages {
		depths[m.ID] = depths[string(m.ParentID)] + 1
	}
	return depths, nil
}

// lastRow returns the highest number of a row of texts or terms.
func (c *Conn) lastRow(ctx context.Context) (int64, error) {
	var last, lastText int64
	if _, err := c.Get(ctx, knownSQL.lastRow, []any{1}, &last); err != nil {
		return 0, err
	}
	_, err := c.Get(ctx, knownSQL.lastTextRow, []any{1}, &lastText)
	return max(last, lastText), err
}

// fitting returns as much of a text as fits in the documented full-text index.
func (db *DB) fitting(text string) string {
	if most := db.limits.SearchText; most > 0 && len(text) > most {
		return query.Shorten(text, most)
	}
	return text
}

// forgetChat deletes the index rows and texts of a chat's messages.
func (c *Conn) forgetChat(ctx context.Context, chatID string) error {
	if err := c.uncount(ctx, chatID); err != nil {
		return err
	}
	statements := []Statement{knownSQL.removeOtherTexts, knownSQL.forget}
	if c.db.dialect.Search().Numbered {
		foreign, err := c.hasForeignTexts(ctx, chatID)
		if err != nil {
			return err
		}
		statements = []Statement{knownSQL.removeTexts, knownSQL.removeTerms, knownSQL.forget}
		if foreign {
			statements = append(statements, knownSQL.removeOtherTexts)
		}
	}
	for _, s := range statements {
		if _, err := c.Exec(ctx, s, chatID); err != nil {
			return err
		}
	}
	return nil
}

// uncount deletes the counts of a chat, so that triggers do not decrement them one by one.
func (c *Conn) uncount(ctx context.Context, chatID string) error {
	if !c.db.dialect.Search().Counted {
		return nil
	}
	_, err := c.Exec(ctx, knownSQL.uncount, chatID)
	return err
}

// hasForeignTexts reports whether other programs wrote texts of a chat. Only a scan finds their
// rows.
func (c *Conn) hasForeignTexts(ctx context.Context, chatID string) (bool, error) {
	texts := 0
	if _, err := c.Get(ctx, knownSQL.textCount, []any{chatID}, &texts); err != nil {
		return false, err
	}
	counts, err := collectMap[int](ctx, c, chatSQL.messageCounts, []string{chatID})
	return texts < counts[chatID], err
}
