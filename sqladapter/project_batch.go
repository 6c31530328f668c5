package sqladapter

import (
	"context"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// batch is the content of the next transaction of a projection. Rows are inserted first, in an
// order that satisfies references; then the steps are run.
type batch struct {
	// rows are inserted. missing are inserted unless their key exists. wanted are compared with
	// those that are there.
	rows       map[*tables.Table][][]any
	missing    map[*tables.Table]map[string][]any
	wanted     map[*tables.Table][]wanted
	blocks     map[string][]any
	blockOrder []string
	messages   []chat.Message

	before, after []step
	// n and bytes are the approximate number and size of rows.
	n, bytes int
	// added, changed and removed count messages.
	added, changed, removed int
	finish                  bool
}

// add adds a row that does not exist.
func (b *batch) add(t *tables.Table, row ...any) {
	if b.rows == nil {
		b.rows = make(map[*tables.Table][][]any)
	}
	b.rows[t] = append(b.rows[t], row)
	b.n++
}

// need adds a row that may exist.
func (b *batch) need(t *tables.Table, key string, more ...any) {
	if b.missing == nil {
		b.missing = make(map[*tables.Table]map[string][]any)
	}
	if b.missing[t] == nil {
		b.missing[t] = make(map[string][]any)
	}
	if b.missing[t][key] == nil {
		b.missing[t][key] = append([]any{key}, more...)
		b.n++
	}
}

// needed returns the rows that may exist, ordered by key.
func (b *batch) needed(t *tables.Table) [][]any {
	rows := make([][]any, 0, len(b.missing[t]))
	for _, key := range slices.Sorted(maps.Keys(b.missing[t])) {
		rows = append(rows, b.missing[t][key])
	}
	return rows
}

// want adds rows that may be there, with other values. With an owner, the values of the columns by
// which a table looks its rows up, the owner's other rows are deleted.
func (b *batch) want(t *tables.Table, owner []any, rows ...[]any) {
	if b.wanted == nil {
		b.wanted = make(map[*tables.Table][]wanted)
	}
	if owner != nil || len(rows) > 0 {
		b.wanted[t] = append(b.wanted[t], wanted{owner, rows})
		b.n += 1 + len(rows)
	}
}

// step is a part of a transaction. If the transaction is retried, it runs again.
type step func(ctx context.Context, c *Conn) error

// most is the approximate size of a transaction in bytes.
const most = 8 << 20

var batchSQL = struct{ setParent Statement }{
	setParent: `UPDATE "span_sets" SET "parent_span_id" = ? WHERE "id" = ?`,
}

// room writes the batch if it is full. It must be called when the batch is consistent with the
// state that it records.
func (w *projection) room(ctx context.Context) error {
	if w.batch.n < w.limit && w.batch.bytes < most {
		return nil
	}
	return w.flush(ctx)
}

// flush writes the batch in a transaction.
func (w *projection) flush(ctx context.Context) error {
	b := &w.batch
	if b.n == 0 && len(b.before) == 0 && len(b.after) == 0 && !b.finish {
		return nil
	}
	if w.check != nil {
		err := w.check(ctx, b)
		w.batch = batch{}
		return err
	}
	write := w.window.Write
	if b.finish {
		write = w.window.Finish
	}
	if err := write(ctx, func(c *Conn) error { return w.write(ctx, c, b) }); err != nil {
		return err
	}
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
	return nil
}

func (w *projection) insert(ctx context.Context, c *Conn, b *batch) error {
	if err := c.insertAll(ctx, b, tables.Scopes, tables.Chats, tables.Reach, tables.Pins, tables.Erased, tables.Users); err != nil {
		return err
	}
	if err := c.insertBlocks(ctx, b); err != nil {
		return err
	}
	// A set follows a span that may be in the batch, and a span of the batch may be in the set.
	var parents []step
	err := c.insertMissing(ctx, tables.Sets, keysOf(b.needed(tables.Sets)), func(id string) []any {
		row := b.missing[tables.Sets][id]
		if row[1] != nil {
			parents = append(parents, exec(batchSQL.setParent, row[1], row[0]))
		}
		return []any{row[0], nil, row[2], row[3]}
	})
	if err == nil {
		err = c.insertAll(ctx, b, tables.Spans)
	}
	for _, set := range parents {
		if err == nil {
			err = set(ctx, c)
		}
	}
	if err == nil {
		err = c.insertAll(ctx, b, tables.Usages, tables.Contexts, tables.Values, tables.Summaries)
	}
	if err != nil {
		return err
	}
	if len(b.messages) > 0 {
		if err := c.insertMessages(ctx, b.messages); err != nil {
			return err
		}
	}
	return c.insertAll(ctx, b, tables.Branches, tables.Checkpoints)
}

// insertAll writes the rows of tables.
func (c *Conn) insertAll(ctx context.Context, b *batch, list ...*tables.Table) error {
	for _, t := range list {
		if err := c.insert(ctx, sqlOf[t].insert, b.rows[t]); err != nil {
			return err
		}
		missing := b.missing[t]
		if err := c.insertMissing(ctx, t, keysOf(b.needed(t)), func(id string) []any { return missing[id] }); err != nil {
			return err
		}
		for _, w := range b.wanted[t] {
			if err := c.replace(ctx, t, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// wanted are the rows that a table should have with their keys or, if there is an owner, those that
// the owner should have.
type wanted struct {
	owner []any
	rows  [][]any
}

// replace makes the rows of a table those that are wanted. A row whose first columns differ is
// inserted again, because another one may have got its name.
func (c *Conn) replace(ctx context.Context, t *tables.Table, w wanted) error {
	var found [][]any
	var err error
	if w.owner != nil {
		found, err = collect(ctx, c, scanRow(t), sqlOf[t].of, w.owner...)
	} else {
		found, err = collectList(ctx, c, scanRow(t), sqlOf[t].rows, keysOf(w.rows))
	}
	if err != nil {
		return err
	}
	has := byKey(found)
	var gone []string
	var added, changed [][]any
	for _, row := range w.rows {
		id := row[0].(string)
		was, there := has[id]
		delete(has, id)
		if !there {
			added = append(added, row)
		} else if differ := differences(t, row, was); len(differ) > 0 && differ[0] < t.Fixed {
			gone, added = append(gone, id), append(added, row)
		} else if len(differ) > 0 {
			changed = append(changed, row)
		}
	}
	if w.owner != nil {
		gone = slices.AppendSeq(gone, maps.Keys(has))
	}
	if err := c.execAll(ctx, sqlOf[t].remove, gone); err != nil {
		return err
	}
	for _, row := range changed {
		if _, err := c.Exec(ctx, sqlOf[t].update, append(row[t.Fixed:len(row):len(row)], row[0])...); err != nil {
			return err
		}
	}
	return c.insert(ctx, sqlOf[t].insert, added)
}

func keysOf(rows [][]any) []string {
	list := make([]string, len(rows))
	for i, row := range rows {
		list[i] = row[0].(string)
	}
	return list
}

// insertMissing inserts the rows of keys that a table does not have.
func (c *Conn) insertMissing(ctx context.Context, t *tables.Table, ids []string, row func(id string) []any) error {
	has, err := c.has(ctx, sqlOf[t].known, ids)
	if err != nil {
		return err
	}
	var rows [][]any
	for _, id := range ids {
		if !has[id] {
			rows = append(rows, row(id))
		}
	}
	return c.insert(ctx, sqlOf[t].insert, rows)
}

// has returns the ids that a query finds.
func (c *Conn) has(ctx context.Context, known Statement, ids []string) (map[string]bool, error) {
	found, err := collectList(ctx, c, scanString, known, ids)
	has := make(map[string]bool, len(found))
	for _, id := range found {
		has[id] = true
	}
	return has, err
}

// entry is the state of a run in a scope, in a batch.
type entry struct {
	key, run  string
	own, last uint64
	had       bool
}

// add records the last projected span of the run in a batch.
func (e *entry) add(b *batch, last uint64) {
	if last == e.last {
		return
	}
	e.last = last
	if !e.had {
		b.add(tables.Reach, e.key, e.run, last, int64(min(e.own, last)))
		e.had = true
		return
	}
	b.after = append(b.after, exec(scopeSQL.moveReach, last, int64(min(e.own, last)), e.key, e.run))
	b.n++
}
