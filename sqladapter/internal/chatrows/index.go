package chatrows

import (
	"context"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
)

// lineage_messages has data derived from messages: the data for searches and, if triggers maintain it, the length of
// the message's chain. Other programs do not write it. Missing rows are created when they are needed.

var indexSQL = struct {
	versions, removeOfChat, remove, lastRow, lastTextRow, removeTextsOfChat                 sqladapter.Statement
	removeTermsOfChat, removeOtherTextsOfChat, textCount, uncount, removeTexts, removeTerms sqladapter.Statement
	removeOtherTexts                                                                        sqladapter.Statement
}{
	versions:               `SELECT m."id", {version} AS "version" FROM "messages" m WHERE m."id" IN ({list})`,
	removeOfChat:           `DELETE FROM "lineage_messages" WHERE "chatId" = ?`,
	remove:                 `DELETE FROM "lineage_messages" WHERE "messageId" IN ({list})`,
	lastRow:                `SELECT "row" FROM "lineage_messages" ORDER BY "row" DESC {limit}`,
	lastTextRow:            `SELECT "rowid" FROM "messages_fts" ORDER BY "rowid" DESC {limit}`,
	removeTextsOfChat:      `DELETE FROM "messages_fts" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "chatId" = ? AND "hasText" = 1)`,
	removeTermsOfChat:      `DELETE FROM "lineage_terms" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "chatId" = ?)`,
	removeOtherTextsOfChat: `DELETE FROM "messages_fts" WHERE "chatId" = ?`,
	textCount:              `SELECT COUNT(*) AS "count" FROM "lineage_messages" WHERE "chatId" = ? AND "hasText" = 1`,
	uncount:                `DELETE FROM "lineage_chats" WHERE "chatId" = ?`,
	removeTexts:            `DELETE FROM "messages_fts" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "messageId" IN ({list}) AND "hasText" = 1)`,
	removeTerms:            `DELETE FROM "lineage_terms" WHERE "rowid" IN (SELECT "row" FROM "lineage_messages" WHERE "messageId" IN ({list}))`,
	removeOtherTexts:       `DELETE FROM "messages_fts" WHERE "messageId" IN ({list})`,
}

// IndexOwn indexes messages that this transaction has written, with their texts.
func IndexOwn(ctx context.Context, c *sqladapter.Conn, messages []chat.Message, depths NewDepths) error {
	search := c.Dialect().Search()
	var versions map[string]string
	if !search.Counted {
		ids := make([]string, len(messages))
		for i, m := range messages {
			ids[i] = m.ID
		}
		var err error
		if versions, err = Versions(ctx, c, ids); err != nil {
			return err
		}
		if search.Unlinked {
			if err := Unindex(ctx, c, ids); err != nil {
				return err
			}
		}
	}
	const texts = true
	return Index(ctx, c, messages, depths, versions, texts)
}

// Index indexes messages that exist. With texts it also writes their texts, which it must not if another program wrote them. Versions must be
// read before the messages, so that a message overwritten in between counts as not indexed.
func Index(ctx context.Context, c *sqladapter.Conn, messages []chat.Message, depths NewDepths, versions map[string]string, texts bool) error {
	dialect := c.Dialect()
	search, limits, bytes := dialect.Search(), dialect.Limits(), c.Syntax().Bytes
	row := int64(0)
	if search.Numbered {
		var err error
		if row, err = lastRow(ctx, c); err != nil {
			return err
		}
	}
	var known, textRows, terms [][]any
	indexed := indexAll(messages)
	for i, m := range messages {
		text, words := indexed[i].text, indexed[i].terms
		if search.Numbered {
			row++
			known = append(known, []any{m.ID, m.ChatID, depths.depths[m.ID], row, texts, indexed[i].card})
			terms = append(terms, []any{row, words})
			textRows = append(textRows, []any{row, m.ID, m.ChatID, m.Name, Fitting(limits, text)})
			continue
		}
		card := any(indexed[i].card)
		if bytes != nil {
			card = bytes(indexed[i].card)
		}
		values := []any{m.ID, m.ChatID, versions[m.ID], words, card}
		if search.Depths {
			depth, epoch := depths.columns(&messages[i])
			values = append(values, depth, epoch)
		}
		known = append(known, values)
		textRows = append(textRows, []any{m.ID, m.ChatID, m.Name, Fitting(limits, text)})
	}
	if err := lists.Insert(ctx, c, search.Known, known); err != nil {
		return err
	}
	if err := lists.Insert(ctx, c, search.Terms, terms); err != nil {
		return err
	}
	if !texts {
		return nil
	}
	return lists.Insert(ctx, c, search.Texts, textRows)
}

// Versions returns the versions of messages, by id: see Syntax.Version.
func Versions(ctx context.Context, c *sqladapter.Conn, ids []string) (map[string]string, error) {
	return lists.CollectMap[string](ctx, c, indexSQL.versions, ids)
}

// Unindex deletes the index rows of messages. They are rows of earlier messages with these ids, which another program
// has deleted or moved to another chat.
func Unindex(ctx context.Context, c *sqladapter.Conn, ids []string) error {
	return lists.ExecList(ctx, c, indexSQL.remove, ids)
}

// UnindexWithTexts deletes the index rows and texts of messages.
func UnindexWithTexts(ctx context.Context, c *sqladapter.Conn, ids []string) error {
	steps := []sqladapter.Statement{indexSQL.removeOtherTexts, indexSQL.remove}
	if c.Dialect().Search().Numbered {
		steps = []sqladapter.Statement{indexSQL.removeTexts, indexSQL.removeTerms, indexSQL.remove}
	}
	for _, s := range steps {
		if err := lists.ExecList(ctx, c, s, ids); err != nil {
			return err
		}
	}
	return nil
}

// LastIndexed returns the highest number of a row of an indexed message, 0 if there is none.
func LastIndexed(ctx context.Context, c *sqladapter.Conn) (last int64, err error) {
	_, err = c.Get(ctx, indexSQL.lastRow, []any{1}, &last)
	return last, err
}

// lastRow returns the highest number of a row of texts or terms.
func lastRow(ctx context.Context, c *sqladapter.Conn) (int64, error) {
	last, err := LastIndexed(ctx, c)
	if err != nil {
		return 0, err
	}
	var lastText int64
	_, err = c.Get(ctx, indexSQL.lastTextRow, []any{1}, &lastText)
	return max(last, lastText), err
}

// Fitting returns as much of a text as fits in the documented full-text index.
func Fitting(limits sqladapter.Limits, text string) string {
	if most := limits.SearchText; most > 0 && len(text) > most {
		return query.Shorten(text, most)
	}
	return text
}

// unindexChat deletes the index rows and texts of a chat's messages.
func unindexChat(ctx context.Context, c *sqladapter.Conn, chatID string) error {
	if err := uncount(ctx, c, chatID); err != nil {
		return err
	}
	statements := []sqladapter.Statement{indexSQL.removeOtherTextsOfChat, indexSQL.removeOfChat}
	if c.Dialect().Search().Numbered {
		foreign, err := hasForeignTexts(ctx, c, chatID)
		if err != nil {
			return err
		}
		statements = []sqladapter.Statement{indexSQL.removeTextsOfChat, indexSQL.removeTermsOfChat, indexSQL.removeOfChat}
		if foreign {
			statements = append(statements, indexSQL.removeOtherTextsOfChat)
		}
	}
	for _, s := range statements {
		if _, err := c.Exec(ctx, s, chatID); err != nil {
			return err
		}
	}
	return nil
}

// uncount deletes the counts of a chat, so that triggers do not decrease them one by one.
func uncount(ctx context.Context, c *sqladapter.Conn, chatID string) error {
	if !c.Dialect().Search().Counted {
		return nil
	}
	_, err := c.Exec(ctx, indexSQL.uncount, chatID)
	return err
}

// hasForeignTexts reports whether other programs wrote texts of a chat. Only a scan finds their
// rows.
func hasForeignTexts(ctx context.Context, c *sqladapter.Conn, chatID string) (bool, error) {
	texts := 0
	if _, err := c.Get(ctx, indexSQL.textCount, []any{chatID}, &texts); err != nil {
		return false, err
	}
	counts, err := MessageCounts(ctx, c, []string{chatID})
	return texts < counts[chatID], err
}
