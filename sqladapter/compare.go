package sqladapter

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// ErrBehind is returned for a comparison with a database that has not followed the
// store to its last commit.
var ErrBehind = errors.New("database is behind the store")

// DifferenceKind tells how a row differs from what the store says.
type DifferenceKind string

// The kinds of difference.
const (
	Missing   DifferenceKind = "missing"
	Extra     DifferenceKind = "extra"
	Different DifferenceKind = "different"
)

// Difference is a row that is not as the store says.
type Difference struct {
	Kind  DifferenceKind `json:"kind"`
	Table string         `json:"table"`
	ID    string         `json:"id"`
	// Columns are those that differ.
	Columns []string `json:"columns,omitempty"`
}

// String describes the difference in a line.
func (d Difference) String() string {
	s := fmt.Sprintf("%s: row %q is %s", d.Table, d.ID, d.Kind)
	if len(d.Columns) > 0 {
		s += fmt.Sprintf(" in %q", d.Columns)
	}
	return s
}

// CompareOptions qualify a comparison.
type CompareOptions struct {
	// Progress, when not nil, is told how many threads, and contexts outside of
	// threads, were compared.
	Progress func(done, total int)
}

var errStop = errors.New("no more differences are wanted")

// Compare compares every row that a projector brought into a database with what the
// store says, and yields what differs. The database must have followed the store to
// its end: see Projector. Memory does not grow with the number of messages, but by
// some bytes for each run.
func Compare(ctx context.Context, db *DB, store *lineage.Store, o CompareOptions) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		c := &comparer{yield: func(d Difference) error {
			if !yield(d, nil) {
				return errStop
			}
			return nil
		}, counts: make(map[string]int64)}
		if err := c.run(ctx, db, store, o); err != nil && !errors.Is(err, errStop) {
			yield(Difference{}, err)
		}
	}
}

type comparer struct {
	w     *projection
	yield func(Difference) error
	// counts has how many rows were found that should be there.
	counts map[string]int64
}

// checkIntegrity returns an error if the database finds a table that is to be compared damaged. Rows that are read
// through an index may then not be those of the table.
func (c *comparer) checkIntegrity(ctx context.Context, db *DB) error {
	check := db.dialect.Syntax().Integrity
	if check == "" {
		return nil
	}
	tables := []string{"chats", "messages", "branches", "checkpoints"}
	if !c.w.ChatsOnly {
		tables = append(tables, "span_sets", "spans", "message_usages", "contexts", "users", "content_blocks")
	}
	return db.Read(ctx, func(conn *Conn) error {
		for _, table := range tables {
			rows, err := conn.Query(ctx, check, table)
			found, err := all(rows, err, scanString)
			if err != nil {
				return err
			}
			if len(found) != 1 || found[0] != "ok" {
				return &TableError{Table: table, Err: ErrCorrupt, Detail: strings.Join(found[:min(len(found), 3)], "; ")}
			}
		}
		return nil
	})
}

func (c *comparer) run(ctx context.Context, db *DB, store *lineage.Store, o CompareOptions) error {
	var mark *watermark
	err := db.Read(ctx, func(conn *Conn) (err error) {
		mark, err = conn.mark(ctx)
		return err
	})
	if err != nil {
		return err
	}
	p := &Projector{Store: store, DB: db, ChatsOnly: mark != nil && !mark.Lineage}
	if err := p.check(mark); err != nil {
		return err
	}
	snapshot, err := store.View().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	head, err := snapshot.Head(ctx)
	if err != nil {
		return err
	}
	c.w = &projection{
		Projector: p, state: snapshot, mark: mark, head: head, report: &ProjectReport{}, limit: 2000,
		usages: make(map[string]uint64), check: c.compare,
	}
	if err := p.checkMark(ctx, mark); err != nil {
		return err
	}
	if mark.At != head {
		return fmt.Errorf("database has commit %d of %d: %w", mark.At.Number, head.Number, ErrBehind)
	}
	if err := c.checkIntegrity(ctx, db); err != nil {
		return err
	}
	todo, err := c.w.everything(ctx, nil)
	if err != nil {
		return err
	}
	for i, s := range todo.scopes {
		if err := c.w.grow(ctx, s); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(todo.scopes))
		}
	}
	if err := c.w.flush(ctx); err != nil {
		return err
	}
	return c.extras(ctx)
}

var compareSQL = struct {
	chats, messages, branches, checkpoints, texts, rowTexts    Statement
	sets, spans, usages, contexts, blocks, users               Statement
	pageChats, pageMessages, pageBranches, pageCheckpoints     Statement
	pageSpans, pageUsages, pageContexts, pageBlocks, pageSets  Statement
	countChats, countMessages, countBranches, countCheckpoints Statement
	countSpans, countUsages, countContexts                     Statement
}{
	chats:       `SELECT "id", "userId", "title", "metadata", "createdAt", "updatedAt" FROM "chats" WHERE "id" IN ({list})`,
	messages:    `SELECT "id", "chatId", "parentId", "name", "type", "data", "createdAt" FROM "messages" WHERE "id" IN ({list})`,
	branches:    `SELECT "id", "chatId", "name", "headMessageId", "isActive", "createdAt" FROM "branches" WHERE "id" IN ({list})`,
	checkpoints: `SELECT "id", "chatId", "name", "messageId", "createdAt" FROM "checkpoints" WHERE "id" IN ({list})`,
	texts:       `SELECT "messageId", "chatId", "name", "content" FROM "messages_fts" WHERE "messageId" IN ({list})`,
	rowTexts: `SELECT f."messageId", f."chatId", f."name", f."content" FROM "lineage_messages" k ` +
		`JOIN "messages_fts" f ON f."rowid" = k."row" WHERE k."messageId" IN ({list}) AND k."hasText" = 1`,
	sets:  `SELECT "id", "parent_span_id", "alternatives", "created_at" FROM "span_sets" WHERE "id" IN ({list})`,
	spans: `SELECT "id", "parent_span_id", "span_set_id", "run_id", "seq", "position" FROM "spans" WHERE "id" IN ({list})`,
	usages: `SELECT "id", "content_id", "role", "created_at", "span_id", "place", "kind", "name", "revision", "content_type", "source_id", ` +
		`"metadata", "origin_kind", "origin_user_id", "origin_model_id", "origin_source_id", "origin_parent_id" ` +
		`FROM "message_usages" WHERE "id" IN ({list})`,
	contexts: `SELECT "id", "parent_context_id", "tip_span_id", "summary_text", "summary_embedding", "system_prompt_override", ` +
		`"model_override", "created_at", "thread_id", "chat_id", "base_span_id", "span_set_id", "summary_content_id", "overrides", "metadata" ` +
		`FROM "contexts" WHERE "id" IN ({list})`,
	blocks: `SELECT "id", "content_type", "body", "origin_kind", "origin_user_id", "origin_model_id", "origin_source_id", ` +
		`"origin_parent_id", "created_at", "size" FROM "content_blocks" WHERE "id" IN ({list})`,
	users: `SELECT "id" FROM "users" WHERE "id" IN ({list})`,

	pageChats:       `SELECT "id" FROM "chats" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageMessages:    `SELECT "id" FROM "messages" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageBranches:    `SELECT "id" FROM "branches" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageCheckpoints: `SELECT "id" FROM "checkpoints" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageSpans:       `SELECT "id" FROM "spans" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageUsages:      `SELECT "id" FROM "message_usages" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageContexts:    `SELECT "id" FROM "contexts" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageBlocks:      `SELECT "id" FROM "content_blocks" WHERE "id" > ? ORDER BY "id" {limit}`,
	pageSets:        `SELECT "id" FROM "span_sets" WHERE "id" > ? ORDER BY "id" {limit}`,

	countChats:       `SELECT COUNT(*) AS "count" FROM "chats"`,
	countMessages:    `SELECT COUNT(*) AS "count" FROM "messages"`,
	countBranches:    `SELECT COUNT(*) AS "count" FROM "branches"`,
	countCheckpoints: `SELECT COUNT(*) AS "count" FROM "checkpoints"`,
	countSpans:       `SELECT COUNT(*) AS "count" FROM "spans"`,
	countUsages:      `SELECT COUNT(*) AS "count" FROM "message_usages"`,
	countContexts:    `SELECT COUNT(*) AS "count" FROM "contexts"`,
}

// expected are rows of a table as they should be. The first column is the id.
type expected struct {
	table string
	query Statement
	rows  [][]any
}

// compare compares what would be written with what is there.
func (c *comparer) compare(ctx context.Context, b *batch) error {
	tables := []expected{
		{"chats", compareSQL.chats, b.chats},
		{"messages", compareSQL.messages, messageRows(b.messages)},
		{"messages_fts", c.textQuery(), c.textRows(b.messages)},
		{"branches", compareSQL.branches, b.branches},
		{"checkpoints", compareSQL.checkpoints, b.checkpoints},
		{"span_sets", compareSQL.sets, values(b.sets, b.setOrder)},
		{"spans", compareSQL.spans, b.spans},
		{"message_usages", compareSQL.usages, b.usages},
		{"contexts", compareSQL.contexts, b.contexts},
		{"users", compareSQL.users, userRows(b.users)},
		{"content_blocks", compareSQL.blocks, blockRows(b)},
	}
	for _, e := range tables {
		for part := range batches(e.rows, 200) {
			if err := c.compareRows(ctx, expected{e.table, e.query, part}); err != nil {
				return err
			}
		}
	}
	return nil
}

func messageRows(messages []chat.Message) [][]any {
	rows := make([][]any, len(messages))
	for i, m := range messages {
		rows[i] = []any{m.ID, m.ChatID, optional(m.ParentID), m.Name, optional(m.Type), string(m.Data), m.CreatedAt}
	}
	return rows
}

func (c *comparer) textQuery() Statement {
	if c.w.DB.dialect.Search().Numbered {
		return compareSQL.rowTexts
	}
	return compareSQL.texts
}

func (c *comparer) textRows(messages []chat.Message) [][]any {
	rows := make([][]any, len(messages))
	for i, m := range messages {
		rows[i] = []any{m.ID, m.ChatID, m.Name, c.w.DB.fitting(searchText(m.Data))}
	}
	return rows
}

func values(rows map[string][]any, order []string) [][]any {
	list := make([][]any, len(order))
	for i, key := range order {
		list[i] = rows[key]
	}
	return list
}

func userRows(users map[string]bool) [][]any {
	var rows [][]any
	for _, id := range keys(users) {
		rows = append(rows, []any{id})
	}
	return rows
}

// blockRows returns the rows of blocks. Of a bare one only the id is given: another
// scope may use it.
func blockRows(b *batch) [][]any {
	var rows [][]any
	for _, id := range b.blockOrder {
		row := []any{id}
		if r := b.blocks[id]; !r.bare {
			row = append(row, r.values()...)
		}
		rows = append(rows, row)
	}
	return rows
}

// compareRows compares a number of rows that one statement can ask for.
func (c *comparer) compareRows(ctx context.Context, e expected) error {
	ids := make([]string, len(e.rows))
	for i, row := range e.rows {
		ids[i] = row[0].(string)
	}
	var found map[string][]any
	var columns []string
	err := c.w.DB.Read(ctx, func(conn *Conn) error {
		args := padded(ids)
		rows, err := conn.QueryN(ctx, e.query, len(args), args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if columns, err = rows.Columns(); err != nil {
			return err
		}
		found, err = rowsByID(rows, len(columns))
		return err
	})
	if err != nil {
		return err
	}
	for _, want := range e.rows {
		id := want[0].(string)
		got, there := found[id]
		if !there {
			if err := c.yield(Difference{Kind: Missing, Table: e.table, ID: id}); err != nil {
				return err
			}
			continue
		}
		c.counts[e.table]++
		var differ []string
		for i := range want {
			if !sameValue(want[i], got[i], isJSON(e.table, columns[i])) {
				differ = append(differ, columns[i])
			}
		}
		if len(differ) > 0 {
			if err := c.yield(Difference{Kind: Different, Table: e.table, ID: id, Columns: differ}); err != nil {
				return err
			}
		}
	}
	return nil
}

func rowsByID(rows *sql.Rows, columns int) (map[string][]any, error) {
	found := make(map[string][]any)
	for rows.Next() {
		row, into := make([]any, columns), make([]any, columns)
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		found[plain(row[0])] = row
	}
	return found, rows.Err()
}

func isJSON(table, column string) bool {
	return table == "messages" && column == "data" || table == "chats" && column == "metadata"
}

// plain returns a value as text, however a driver returns it.
func plain(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	case bool:
		if v {
			return "1"
		}
		return "0"
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return fmt.Sprint(v)
}

// sameValue compares a parameter with what was read. A parameter that is a nil slice is
// written as null; an empty body may be read as a nil slice, and is not null.
func sameValue(want, got any, isJSON bool) bool {
	if b, ok := want.([]byte); ok && b == nil {
		want = nil
	}
	if want == nil || got == nil {
		return want == got
	}
	a, b := plain(want), plain(got)
	if a == b || !isJSON {
		return a == b
	}
	return chat.Message{Data: json.RawMessage(a)}.Same(chat.Message{Data: json.RawMessage(b)})
}

// comparedPage is how many ids are looked at together for rows that should not be
// there.
const comparedPage = 500

// extras yields rows that nothing in the store stands for.
func (c *comparer) extras(ctx context.Context) error {
	tables := c.documentedTables(ctx)
	if !c.w.ChatsOnly {
		tables = append(tables, c.lineageTables(ctx)...)
	}
	for _, t := range tables {
		if more, err := c.hasMore(ctx, t); err != nil {
			return err
		} else if !more {
			continue
		}
		for after := ""; ; {
			var ids []string
			err := c.w.DB.Read(ctx, func(conn *Conn) error {
				rows, err := conn.Query(ctx, t.page, after, comparedPage)
				ids, err = all(rows, err, scanString)
				return err
			})
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				break
			}
			after = ids[len(ids)-1]
			for _, id := range ids {
				ok, err := t.belongs(id)
				if err == nil && !ok {
					err = c.yield(Difference{Kind: Extra, Table: t.name, ID: id})
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hasMore reports whether a table may have more rows than were found.
func (c *comparer) hasMore(ctx context.Context, t table) (more bool, err error) {
	if t.count == "" {
		return true, nil
	}
	err = c.w.DB.Read(ctx, func(conn *Conn) error {
		var n int64
		_, err := conn.Get(ctx, t.count, nil, &n)
		more = n != c.counts[t.name]
		return err
	})
	return more, err
}

// table is a table whose rows are looked at for those that should not be there.
type table struct {
	name string
	page Statement
	// count is empty for a table whose rows several threads share.
	count   Statement
	belongs func(id string) (bool, error)
}
