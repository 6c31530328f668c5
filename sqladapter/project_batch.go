package sqladapter

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
)

// batch is what the next transaction of a projection writes. Rows are inserted
// first, in an order that has what they refer to before them; then the steps are
// taken.
type batch struct {
	scopes, chats, reach, pins        [][]any
	users                             map[string]bool
	blocks                            map[string]*blockRow
	blockOrder                        []string
	sets                              map[string][]any
	setOrder                          []string
	spans, usages, contexts, branches [][]any
	checkpoints                       [][]any
	erased                            map[string]bool
	values                            []ownedValues
	inherited                         [][]any // values
	messages                          []chat.Message
	before, after                     []step
	// rows and bytes are about how much there is.
	rows, bytes int
	// added, changed and removed count messages.
	added, changed, removed int
	finish                  bool
}

// step is a part of a transaction. It may be taken more than once, the transaction
// having failed in between.
type step func(ctx context.Context, c *Conn) error

// most is how many bytes of rows a transaction takes, about.
const most = 8 << 20

var batchSQL = struct {
	scopes, reach, pins, users, sets, spans, usages, contexts, erased Statement
	knownUsers, knownSets, knownErased, setParent                     Statement
	branches, checkpoints                                             Statement
}{
	scopes: `INSERT INTO "lineage_scopes" ("scope", "chat_id") VALUES {rows:2}`,
	reach:  `INSERT INTO "lineage_reach" ("scope", "run_id", "last_seq", "own") VALUES {rows:4}`,
	pins:   `INSERT INTO "lineage_pins" ("id", "scope", "run_id", "seq") VALUES {rows:4}`,
	users:  `INSERT INTO "users" ("id") VALUES {rows:1}`,
	sets:   `INSERT INTO "span_sets" ("id", "parent_span_id", "alternatives", "created_at") VALUES {rows:4}`,
	spans:  `INSERT INTO "spans" ("id", "parent_span_id", "span_set_id", "run_id", "seq", "position") VALUES {rows:6}`,
	usages: `INSERT INTO "message_usages" ("id", "content_id", "role", "created_at", "span_id", "place", "kind", "name", "revision", ` +
		`"content_type", "source_id", "metadata", "origin_kind", "origin_user_id", "origin_model_id", "origin_source_id", "origin_parent_id") ` +
		`VALUES {rows:17}`,
	contexts: `INSERT INTO "contexts" ("id", "parent_context_id", "tip_span_id", "summary_text", "summary_embedding", "system_prompt_override", ` +
		`"model_override", "created_at", "thread_id", "chat_id", "base_span_id", "span_set_id", "summary_content_id", "overrides", "metadata") ` +
		`VALUES {rows:15}`,
	erased: `INSERT INTO "lineage_erased" ("content_id") VALUES {rows:1}`,

	knownUsers:  `SELECT "id" FROM "users" WHERE "id" IN ({list})`,
	knownSets:   `SELECT "id" FROM "span_sets" WHERE "id" IN ({list})`,
	knownErased: `SELECT "content_id" FROM "lineage_erased" WHERE "content_id" IN ({list})`,
	setParent:   `UPDATE "span_sets" SET "parent_span_id" = ? WHERE "id" = ?`,

	branches:    `INSERT INTO "branches" ("id", "chatId", "name", "headMessageId", "isActive", "createdAt") VALUES {rows:6}`,
	checkpoints: `INSERT INTO "checkpoints" ("id", "chatId", "name", "messageId", "createdAt") VALUES {rows:5}`,
}

// room writes the batch if it is full. It must be called where what is in the batch
// agrees with what it says is in the database.
func (w *projection) room(ctx context.Context) error {
	if w.batch.rows < w.limit && w.batch.bytes < most {
		return nil
	}
	return w.flush(ctx)
}

// flush writes the batch in a transaction.
func (w *projection) flush(ctx context.Context) error {
	b := &w.batch
	if b.rows == 0 && len(b.before) == 0 && len(b.after) == 0 && !b.finish {
		return nil
	}
	if w.check != nil {
		err := w.check(ctx, b)
		w.batch = batch{}
		return err
	}
	err := w.DB.Write(ctx, func(c *Conn) error { return w.write(ctx, c, b) })
	if err != nil {
		return err
	}
	w.mark.Turn++
	w.report.Transactions++
	w.report.Added += b.added
	w.report.Changed += b.changed
	w.report.Removed += b.removed
	w.batch = batch{}
	if w.Progress != nil {
		w.Progress(*w.report)
	}
	return nil
}

func (w *projection) write(ctx context.Context, c *Conn, b *batch) error {
	n, err := c.Exec(ctx, markSQL.turn, w.mark.Turn)
	if err != nil {
		return err
	}
	if n == 0 {
		return errOvertaken
	}
	for _, take := range b.before {
		if err := take(ctx, c); err != nil {
			return err
		}
	}
	if err := w.insert(ctx, c, b); err != nil {
		return err
	}
	for _, take := range b.after {
		if err := take(ctx, c); err != nil {
			return err
		}
	}
	if b.finish {
		if _, err := c.Exec(ctx, markSQL.finish, w.head.Number, int64(w.head.ID), w.head.Number, int64(w.head.ID)); err != nil {
			return err
		}
	}
	return nil
}

func (w *projection) insert(ctx context.Context, c *Conn, b *batch) error {
	for _, table := range []struct {
		insert Statement
		rows   [][]any
	}{{batchSQL.scopes, b.scopes}, {chatSQL.insert, b.chats}, {batchSQL.reach, b.reach}, {batchSQL.pins, b.pins}} {
		if err := c.insert(ctx, table.insert, table.rows); err != nil {
			return err
		}
	}
	if err := c.insertMissing(ctx, batchSQL.knownErased, batchSQL.erased, keys(b.erased), func(id string) []any { return []any{id} }); err != nil {
		return err
	}
	if err := w.insertLineage(ctx, c, b); err != nil {
		return err
	}
	if len(b.messages) > 0 {
		if err := c.insertMessages(ctx, b.messages); err != nil {
			return err
		}
	}
	if err := c.insert(ctx, batchSQL.branches, b.branches); err != nil {
		return err
	}
	return c.insert(ctx, batchSQL.checkpoints, b.checkpoints)
}

func (w *projection) insertLineage(ctx context.Context, c *Conn, b *batch) error {
	if err := c.insertMissing(ctx, batchSQL.knownUsers, batchSQL.users, keys(b.users), func(id string) []any { return []any{id} }); err != nil {
		return err
	}
	if err := c.insertBlocks(ctx, b); err != nil {
		return err
	}
	// A set follows a span that may be among those of the batch, which may be in the
	// set.
	var added [][]any
	err := c.insertMissing(ctx, batchSQL.knownSets, batchSQL.sets, b.setOrder, func(id string) []any {
		row := b.sets[id]
		if row[1] != nil {
			added = append(added, row)
		}
		return []any{row[0], nil, row[2], row[3]}
	})
	if err != nil {
		return err
	}
	if err := c.insert(ctx, batchSQL.spans, b.spans); err != nil {
		return err
	}
	for _, row := range added {
		if _, err := c.Exec(ctx, batchSQL.setParent, row[1], row[0]); err != nil {
			return err
		}
	}
	if err := c.insert(ctx, batchSQL.usages, b.usages); err != nil {
		return err
	}
	if err := c.insert(ctx, batchSQL.contexts, b.contexts); err != nil {
		return err
	}
	if err := c.insertInherited(ctx, b.inherited); err != nil {
		return err
	}
	for _, is := range b.values {
		if err := c.replaceValues(ctx, is); err != nil {
			return err
		}
	}
	return nil
}

// insertMissing inserts the rows of those ids that a query does not find.
func (c *Conn) insertMissing(ctx context.Context, known, insert Statement, ids []string, row func(id string) []any) error {
	has, err := c.has(ctx, known, ids)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, id := range ids {
		if !has[id] {
			rows = append(rows, row(id))
		}
	}
	return c.insert(ctx, insert, rows)
}

// has returns which of the ids a query finds.
func (c *Conn) has(ctx context.Context, known Statement, ids []string) (map[string]bool, error) {
	has := make(map[string]bool, len(ids))
	for part := range batches(ids, maxList) {
		args := padded(part)
		rows, err := c.QueryN(ctx, known, len(args), args...)
		found, err := all(rows, err, scanString)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			has[id] = true
		}
	}
	return has, nil
}

func keys(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for key := range set {
		list = append(list, key)
	}
	slices.Sort(list)
	return list
}
