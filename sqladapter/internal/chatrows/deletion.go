package chatrows

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// A large chat is deleted in parts, so that transactions are short. The first transaction adds the chat to
// lineage_deleting, which hides it: see the mark {kept:…} of statements. The row of the chat, to which documented
// foreign keys refer, is deleted last, together with the row in lineage_deleting. An interrupted deletion is
// continued when the database is opened, or when one of its ids is used again.

var deletionSQL = struct {
	begin, hold, end, pending, references, branchReferences, pointReferences, branches sqladapter.Statement
	checkpoints, texts, terms, known, checkpointCounts                                 sqladapter.Statement
}{
	begin:   `INSERT INTO "lineage_deleting" ("chatId", "since") VALUES (?, ?)`,
	hold:    `UPDATE "lineage_deleting" SET "since" = "since" WHERE "chatId" = ?`,
	end:     `DELETE FROM "lineage_deleting" WHERE "chatId" = ?`,
	pending: `SELECT "chatId" FROM "lineage_deleting" ORDER BY "since", "chatId"`,
	// Without ORDER BY: a server that underestimates the number of messages would compare all pairs to find the first
	// one in order.
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
	checkpointCounts: `SELECT "chatId", COUNT(*) AS "count" FROM "checkpoints" WHERE "chatId" IN ({list}) GROUP BY "chatId"`,
}

// deletePart is the maximum number of messages, branches or checkpoints deleted per transaction.
const deletePart = lists.Max

// indexPart is the maximum number of messages whose numbered rows of texts and terms are deleted per transaction.
// Each statement that changes a full-text index makes it merge.
const indexPart = 5000

// IsLarge reports whether a chat must be deleted in parts. It returns false for a chat that others refer to, whose
// deletion fails as a whole.
func IsLarge(ctx context.Context, c *sqladapter.Conn, id string) (bool, error) {
	large := false
	for _, s := range []sqladapter.Statement{readSQL.messageCounts, readSQL.branchCounts, deletionSQL.checkpointCounts} {
		counts, err := lists.CollectMap[int](ctx, c, s, []string{id})
		if err != nil {
			return false, err
		}
		large = large || counts[id] > deletePart
	}
	if !large {
		return false, nil
	}
	for _, s := range []sqladapter.Statement{deletionSQL.references, deletionSQL.branchReferences, deletionSQL.pointReferences} {
		var other sql.NullString
		if _, err := c.Get(ctx, s, []any{id}, &other); err != nil || other.Valid {
			return false, err
		}
	}
	return true, nil
}

// IsBeingDeleted reports whether the deletion of a chat was begun and is not complete.
func IsBeingDeleted(ctx context.Context, c *sqladapter.Conn, id string) (bool, error) {
	pending, err := Deletions(ctx, c)
	return slices.Contains(pending, id), err
}

// Deletions returns the chats that are being deleted.
func Deletions(ctx context.Context, c *sqladapter.Conn) ([]string, error) {
	return lists.Collect(ctx, c, lists.ScanString, deletionSQL.pending)
}

// BeginDeletion hides a chat. Texts written by other programs are deleted at once, because only a scan finds their
// rows.
func BeginDeletion(ctx context.Context, c *sqladapter.Conn, id string) error {
	if _, err := c.Exec(ctx, deletionSQL.begin, id, time.Now().UnixMilli()); err != nil {
		return err
	}
	if err := uncount(ctx, c, id); err != nil {
		return err
	}
	if !c.Dialect().Search().Numbered {
		return nil
	}
	foreign, err := hasForeignTexts(ctx, c, id)
	if err == nil && foreign {
		_, err = c.Exec(ctx, indexSQL.removeOtherTextsOfChat, id)
	}
	return err
}

// FinishDeletions completes all deletions and returns their number.
func FinishDeletions(ctx context.Context, db *sqladapter.DB) (n int, err error) {
	var pending []string
	pending, err = lists.ReadAll(ctx, db, lists.ScanString, deletionSQL.pending)
	for _, id := range pending {
		if err == nil {
			err = FinishDeletion(ctx, db, id)
		}
	}
	return len(pending), err
}

// FinishDeletion completes the deletion of a chat. Other processes may do the same concurrently, and create the chat
// again afterwards. So each transaction locks the deletion, and stops if it is gone.
func FinishDeletion(ctx context.Context, db *sqladapter.DB, id string) error {
	d := &deletion{db: db, chat: id}
	for _, part := range []func(context.Context) error{d.removeReferences, d.removeTexts, d.removeMessages, d.removeChat} {
		if err := part(ctx); err != nil || d.finished {
			return err
		}
	}
	return nil
}

// deletion is the deletion of a chat in several transactions.
type deletion struct {
	db       *sqladapter.DB
	chat     string
	finished bool // by another process
}

// write calls do in a transaction, unless another process has finished the deletion.
func (d *deletion) write(ctx context.Context, do func(c *sqladapter.Conn) error) error {
	return d.db.Write(ctx, func(c *sqladapter.Conn) error {
		n, err := c.Exec(ctx, deletionSQL.hold, d.chat)
		if d.finished = err == nil && n == 0; err != nil || d.finished {
			return cmp.Or(err, sqladapter.ErrUnchanged)
		}
		return do(c)
	})
}

// removeReferences removes the checkpoints and branches, which refer to messages.
func (d *deletion) removeReferences(ctx context.Context) error {
	for _, rows := range []struct{ list, remove sqladapter.Statement }{
		{deletionSQL.checkpoints, tables.Checkpoints.Remove}, {deletionSQL.branches, tables.Branches.Remove},
	} {
		for n := deletePart; n == deletePart && !d.finished; {
			err := d.write(ctx, func(c *sqladapter.Conn) error {
				ids, err := lists.Collect(ctx, c, lists.ScanString, rows.list, d.chat, deletePart)
				if n = len(ids); err != nil || n == 0 {
					return err
				}
				return lists.ExecList(ctx, c, rows.remove, ids)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// removeTexts removes the rows of an index that has them by numbers.
func (d *deletion) removeTexts(ctx context.Context) error {
	if !d.db.Dialect().Search().Numbered {
		return nil
	}
	for n := int64(indexPart); n == indexPart && !d.finished; {
		err := d.write(ctx, func(c *sqladapter.Conn) (err error) {
			for _, s := range []sqladapter.Statement{deletionSQL.texts, deletionSQL.terms, deletionSQL.known} {
				if n, err = c.Exec(ctx, s, d.chat, indexPart); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeMessages removes the messages, each before its parent.
func (d *deletion) removeMessages(ctx context.Context) error {
	ids, err := lists.Read(ctx, d.db, func(c *sqladapter.Conn) ([]string, error) { return leavesFirst(ctx, c, d.chat) })
	if err != nil && !errors.Is(err, sqladapter.ErrCorrupt) { // chains that contradict each other are deleted with the chat
		return err
	}
	for batch := range lists.Batches(ids, deletePart) {
		if err := d.write(ctx, func(c *sqladapter.Conn) error { return DeleteMessages(ctx, c, batch) }); err != nil || d.finished {
			return err
		}
	}
	return nil
}

// removeChat removes the chat, and ends the deletion.
func (d *deletion) removeChat(ctx context.Context) error {
	return d.write(ctx, func(c *sqladapter.Conn) error {
		if err := DeleteChat(ctx, c, d.chat); err != nil {
			return err
		}
		_, err := c.Exec(ctx, deletionSQL.end, d.chat)
		return err
	})
}

// leavesFirst returns the messages of a chat, each before its parent.
func leavesFirst(ctx context.Context, c *sqladapter.Conn, chatID string) ([]string, error) {
	links, err := lists.Collect(ctx, c, func(rows *sqladapter.Rows) (l Edge, err error) {
		var parent sql.NullString
		err = rows.Scan(new(sql.RawBytes), &l.ID, &parent)
		l.Parent = parent.String
		return l, err
	}, depthSQL.links, chatID)
	if err != nil {
		return nil, err
	}
	depths, err := DepthsOf(links)
	if err != nil {
		return nil, err
	}
	ids := slices.Collect(maps.Keys(depths))
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(depths[b], depths[a]), cmp.Compare(a, b)) })
	return ids, nil
}

// Write is like DB.Write, for a function that writes messages, branches or chats. If an id is taken, perhaps by
// a chat that is being deleted, it completes deletions and runs the function again.
func Write(ctx context.Context, db *sqladapter.DB, fn func(c *sqladapter.Conn) error) error {
	err := db.Write(ctx, fn)
	if err != nil && db.Dialect().Classify(err) == sqladapter.Duplicate {
		if n, finished := FinishDeletions(ctx, db); n > 0 && finished == nil {
			return db.Write(ctx, fn)
		}
	}
	return err
}
