package sqladapter

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// A large chat is deleted in parts, so that transactions are short. The first one adds it to
// lineage_deleting, which hides it from this package. The row of the chat, which the documented
// keys refer to, is deleted last, together with the row in lineage_deleting. An interrupted
// deletion is continued when the database is opened, or when one of the ids is reused.

var deleteSQL = struct {
	begin, hold, end, pending, user                 Statement
	references, branchReferences, pointReferences   Statement
	branches, checkpoints, texts, terms, known      Statement
	messages, removeBranches, row, checkpointCounts Statement
}{
	begin:   `INSERT INTO "lineage_deleting" ("chatId", "since") VALUES (?, ?)`,
	hold:    `UPDATE "lineage_deleting" SET "since" = "since" WHERE "chatId" = ?`,
	end:     `DELETE FROM "lineage_deleting" WHERE "chatId" = ?`,
	pending: `SELECT "chatId" FROM "lineage_deleting" ORDER BY "since", "chatId"`,

	user: `SELECT "userId" FROM "chats" WHERE "id" = ?`,

	// Without ORDER BY: a server that underestimates the messages would compare each with each for the first in order.
	references: `SELECT MIN(m."id") AS "first" FROM "messages" p JOIN "messages" m ON m."parentId" = p."id" ` +
		`WHERE p."chatId" = ? AND m."chatId" <> p."chatId"`,
	branchReferences: `SELECT MIN(b."id") AS "first" FROM "messages" m JOIN "branches" b ON b."headMessageId" = m."id" ` +
		`WHERE m."chatId" = ? AND b."chatId" <> m."chatId"`,
	pointReferences: `SELECT MIN(k."id") AS "first" FROM "messages" m JOIN "checkpoints" k ON k."messageId" = m."id" ` +
		`WHERE m."chatId" = ? AND k."chatId" <> m."chatId"`,

	branches:    `SELECT "id" FROM "branches" WHERE "chatId" = ? ORDER BY "id" {limit}`,
	checkpoints: `SELECT "id" FROM "checkpoints" WHERE "chatId" = ? ORDER BY "id" {limit}`,
	texts: `DELETE FROM "messages_fts" WHERE "rowid" IN (SELECT "row" FROM ` +
		`(SELECT "row", "hasText" FROM "lineage_messages" WHERE "chatId" = ? ORDER BY "rowid" {limit}) WHERE "hasText" = 1)`,
	terms: `DELETE FROM "lineage_terms" WHERE "rowid" IN ` +
		`(SELECT "row" FROM "lineage_messages" WHERE "chatId" = ? ORDER BY "rowid" {limit})`,
	known: `DELETE FROM "lineage_messages" WHERE "rowid" IN ` +
		`(SELECT "row" FROM "lineage_messages" WHERE "chatId" = ? ORDER BY "rowid" {limit})`,

	messages:       `DELETE FROM "messages" WHERE "chatId" = ?`,
	removeBranches: `DELETE FROM "branches" WHERE "chatId" = ?`,
	row:            `DELETE FROM "chats" WHERE "id" = ?`,

	checkpointCounts: `SELECT "chatId", COUNT(*) AS "count" FROM "checkpoints" WHERE "chatId" IN ({list}) GROUP BY "chatId"`,
}

// deletePart is the maximum number of messages, branches or checkpoints deleted per transaction.
const deletePart = maxList

// forgetPart is the maximum number of messages whose numbered rows of texts and terms are deleted
// per transaction: each statement that changes a full-text index makes it merge.
const forgetPart = 5000

// DeleteChat implements chat.Store.
func (s *chatStore) DeleteChat(ctx context.Context, id string, o chat.DeleteOptions) (deleted bool, err error) {
	inParts := false
	err = s.db.Write(ctx, func(c *Conn) error {
		deleted, inParts = false, false
		is, err := c.chat(ctx, id)
		if err != nil {
			return err
		}
		if is == nil {
			if inParts, err = c.isBeingDeleted(ctx, id); err != nil {
				return err
			}
			if inParts && o.UserID != "" {
				user := ""
				if _, err := c.Get(ctx, deleteSQL.user, []any{id}, &user); err != nil {
					return err
				}
				inParts = user == o.UserID
			}
			deleted = inParts
			return errUnchanged
		}
		if o.UserID != "" && o.UserID != is.UserID {
			return errUnchanged
		}
		if err := c.touch(ctx, id); errors.Is(err, chat.ErrNotFound) {
			return errUnchanged
		} else if err != nil {
			return err
		}
		deleted = true
		if inParts, err = c.isLarge(ctx, id); err != nil {
			return err
		}
		if !inParts {
			return c.deleteChat(ctx, id)
		}
		return c.beginDeletion(ctx, id)
	})
	if err == nil && inParts {
		err = s.db.finishDeletion(ctx, id)
	}
	return deleted && err == nil, err
}

// isLarge reports whether a chat is to be deleted in parts. A chat that others refer to is not: its
// deletion fails as a whole.
func (c *Conn) isLarge(ctx context.Context, id string) (bool, error) {
	large := false
	for _, s := range []Statement{chatSQL.messageCounts, chatSQL.branchCounts, deleteSQL.checkpointCounts} {
		counts, err := collectMap[int](ctx, c, s, []string{id})
		if err != nil {
			return false, err
		}
		large = large || counts[id] > deletePart
	}
	if !large {
		return false, nil
	}
	for _, s := range []Statement{deleteSQL.references, deleteSQL.branchReferences, deleteSQL.pointReferences} {
		var other sql.NullString
		if _, err := c.Get(ctx, s, []any{id}, &other); err != nil || other.Valid {
			return false, err
		}
	}
	return true, nil
}

func (c *Conn) isBeingDeleted(ctx context.Context, id string) (bool, error) {
	pending, err := c.deletions(ctx)
	return slices.Contains(pending, id), err
}

// deletions returns the chats that are being deleted.
func (c *Conn) deletions(ctx context.Context) ([]string, error) {
	return collect(ctx, c, scanString, deleteSQL.pending)
}

// beginDeletion hides a chat. Texts of other programs are deleted at once, because only a scan
// finds their rows.
func (c *Conn) beginDeletion(ctx context.Context, id string) error {
	if _, err := c.Exec(ctx, deleteSQL.begin, id, time.Now().UnixMilli()); err != nil {
		return err
	}
	if err := c.uncount(ctx, id); err != nil {
		return err
	}
	if !c.db.dialect.Search().Numbered {
		return nil
	}
	foreign, err := c.hasForeignTexts(ctx, id)
	if err == nil && foreign {
		_, err = c.Exec(ctx, knownSQL.removeOtherTexts, id)
	}
	return err
}

// finishDeletions completes all deletions and returns their number.
func (db *DB) finishDeletions(ctx context.Context) (n int, err error) {
	var pending []string
	pending, err = readAll(ctx, db, scanString, deleteSQL.pending)
	for _, id := range pending {
		if err == nil {
			err = db.finishDeletion(ctx, id)
		}
	}
	return len(pending), err
}

// finishDeletion completes the deletion of a chat. Others may do the same concurrently, and
// recreate the chat afterwards: so each transaction locks the deletion, and stops if it is gone.
func (db *DB) finishDeletion(ctx context.Context, id string) error {
	over := false
	step := func(do func(c *Conn) error) error {
		return db.Write(ctx, func(c *Conn) error {
			n, err := c.Exec(ctx, deleteSQL.hold, id)
			if over = err == nil && n == 0; err != nil || over {
				return cmp.Or(err, errUnchanged)
			}
			return do(c)
		})
	}
	for _, part := range []struct{ list, remove Statement }{
		{deleteSQL.checkpoints, sqlOf[tables.Checkpoints].remove}, {deleteSQL.branches, sqlOf[tables.Branches].remove},
	} {
		for n := deletePart; n == deletePart && !over; {
			err := step(func(c *Conn) error {
				ids, err := collect(ctx, c, scanString, part.list, id, deletePart)
				if n = len(ids); err != nil || n == 0 {
					return err
				}
				return c.execAll(ctx, part.remove, ids)
			})
			if err != nil {
				return err
			}
		}
	}
	for n := int64(forgetPart); n == forgetPart && !over && db.dialect.Search().Numbered; {
		err := step(func(c *Conn) (err error) {
			for _, s := range []Statement{deleteSQL.texts, deleteSQL.terms, deleteSQL.known} {
				if n, err = c.Exec(ctx, s, id, forgetPart); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var ids []string
	ids, err := read(ctx, db, func(c *Conn) ([]string, error) { return c.leavesFirst(ctx, id) })
	if err != nil && !errors.Is(err, ErrCorrupt) { // contradictory chains are deleted with the chat
		return err
	}
	for batch := range batches(ids, deletePart) {
		if err := step(func(c *Conn) error { return c.deleteMessages(ctx, batch) }); err != nil || over {
			return err
		}
	}
	return step(func(c *Conn) error {
		if err := c.deleteChat(ctx, id); err != nil {
			return err
		}
		_, err := c.Exec(ctx, deleteSQL.end, id)
		return err
	})
}

// leavesFirst returns the messages of a chat, each before its parent.
func (c *Conn) leavesFirst(ctx context.Context, chatID string) ([]string, error) {
	links, err := collect(ctx, c, func(rows *Rows) (l link, err error) {
		var parent sql.NullString
		err = rows.Scan(new(sql.RawBytes), &l.id, &parent)
		l.parent = parent.String
		return l, err
	}, messageSQL.links, chatID)
	if err != nil {
		return nil, err
	}
	depths, err := depthsOf(links)
	if err != nil {
		return nil, err
	}
	ids := slices.Collect(maps.Keys(depths))
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(depths[b], depths[a]), cmp.Compare(a, b)) })
	return ids, nil
}

// deleteMessages deletes messages and all rows that belong to them.
func (c *Conn) deleteMessages(ctx context.Context, ids []string) error {
	for _, s := range []Statement{sqlOf[tables.Origins].remove, knownSQL.remove, sqlOf[tables.Messages].remove} {
		if err := c.execAll(ctx, s, ids); err != nil {
			return err
		}
	}
	return nil
}

// deleteChat deletes a chat with everything in it, in a constant number of statements.
func (c *Conn) deleteChat(ctx context.Context, id string) error {
	if err := c.forgetChat(ctx, id); err != nil {
		return err
	}
	for _, s := range []Statement{chatSQL.removeCheckpoints, deleteSQL.removeBranches, originSQL.removeOfChat, deleteSQL.messages, deleteSQL.row} {
		if _, err := c.Exec(ctx, s, id); err != nil {
			return err
		}
	}
	return nil
}
