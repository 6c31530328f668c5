package sqladapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// ErrBehind is returned for a comparison with a database that has not been brought up to date with
// the store.
var ErrBehind = errors.New("database is behind the store")

// DifferenceKind is the kind of a difference.
type DifferenceKind string

// The kinds of difference.
const (
	Missing   DifferenceKind = "missing"
	Extra     DifferenceKind = "extra"
	Different DifferenceKind = "different"
)

// Difference is a row that does not match the store.
type Difference struct {
	Kind  DifferenceKind `json:"kind"`
	Table string         `json:"table"`
	ID    string         `json:"id"`
	// Columns are the differing columns.
	Columns []string `json:"columns,omitempty"`
}

// String describes the difference in one line.
func (d Difference) String() string {
	s := fmt.Sprintf("%s: row %q is %s", d.Table, d.ID, d.Kind)
	if len(d.Columns) > 0 {
		s += fmt.Sprintf(" in %q", d.Columns)
	}
	return s
}

// CompareOptions configure a comparison.
type CompareOptions struct {
	// Progress, when not nil, is called with the number of compared threads and contexts outside of
	// threads.
	Progress func(done, total int)
}

var errStop = errors.New("stopped")

// Compare compares all projected rows of a database with the store, and yields the differences. The
// database must be up to date with the store: see Projector. Memory depends on the numbers of chats,
// contexts, names and values, but not on that of messages, except for some bytes per run.
func Compare(ctx context.Context, db *DB, store *lineage.Store, o CompareOptions) iter.Seq2[Difference, error] {
	return func(yield func(Difference, error) bool) {
		c := &comparer{yield: func(d Difference) error {
			if !yield(d, nil) {
				return errStop
			}
			return nil
		}, counts: make(map[*tables.Table]int64), found: make(map[*tables.Table]map[string]bool)}
		err := c.run(ctx, db, store, o)
		if errors.Is(err, lineage.ErrExpired) {
			err = fmt.Errorf("another process collected garbage or closed the store during the comparison; repeat it: %w", err)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Difference{}, err)
		}
	}
}

type comparer struct {
	w     *projection
	yield func(Difference) error
	// found are the keys of rows that should be there, in tables whose rows are remembered. counts
	// has how many there are in others.
	counts map[*tables.Table]int64
	found  map[*tables.Table]map[string]bool
}

// checkIntegrity returns an error if the database reports damage in a table to be compared: rows
// read through an index may then differ from those in the table.
func (c *comparer) checkIntegrity(ctx context.Context, db *DB) error {
	check := db.dialect.Syntax().Integrity
	if check == "" {
		return nil
	}
	list := []*tables.Table{tables.Chats, tables.Messages, tables.Branches, tables.Checkpoints}
	if !c.w.ChatsOnly {
		list = append(list, structureTables...)
	}
	return db.Read(ctx, func(conn *Conn) error {
		for _, table := range list {
			found, err := collect(ctx, conn, scanString, check, table.Name)
			if err != nil {
				return err
			}
			if len(found) != 1 || found[0] != "ok" {
				return &TableError{Table: table.Name, Err: ErrCorrupt, Detail: strings.Join(found[:min(len(found), 3)], "; ")}
			}
		}
		return nil
	})
}

func (c *comparer) run(ctx context.Context, db *DB, store *lineage.Store, o CompareOptions) error {
	var mark *watermark
	mark, err := read(ctx, db, func(conn *Conn) (*watermark, error) { return conn.mark(ctx) })
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
		Projector: p, state: snapshot, report: &ProjectReport{}, limit: 2000,
		usages: make(map[string]uint64), places: make(map[structure.ContextID]placed), check: c.compare,
	}
	if err := mark.Check(ctx, store); err != nil {
		return ahead(err)
	}
	if mark.At != head || !mark.Settled() {
		return fmt.Errorf("database has commit %d of %d: %w", mark.At.Number, head.Number, ErrBehind)
	}
	if err := c.checkIntegrity(ctx, db); err != nil {
		return err
	}
	todo, err := c.w.resolve(ctx, derived.NewChanges())
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
	if err := c.w.writeValues(ctx, todo.owners, todo.forks); err != nil {
		return err
	}
	if err := c.w.flush(ctx); err != nil {
		return err
	}
	return c.extras(ctx)
}

// compare compares a batch with the rows in the database.
func (c *comparer) compare(ctx context.Context, b *batch) error {
	rows := map[*tables.Table][][]any{tables.Messages: messageRows(b.messages), tables.Origins: originRows(b.messages), tables.Blocks: blockRows(b)}
	for _, t := range append(documentedTables, projectedTables...) {
		if err := c.compareRows(ctx, t, sqlOf[t].rows, slices.Concat(rows[t], b.rows[t], b.needed(t))); err != nil {
			return err
		}
	}
	return c.compareRows(ctx, texts, c.textQuery(), c.textRows(b.messages))
}

var (
	documentedTables = []*tables.Table{tables.Chats, tables.Messages, tables.Origins, tables.Branches, tables.Checkpoints}
	projectedTables  = []*tables.Table{tables.Sets, tables.Spans, tables.Usages, tables.Contexts, tables.Values, tables.Summaries, tables.Users, tables.Blocks}

	texts = tables.New("messages_fts", 1, "messageId chatId name content")
)

var compareSQL = struct{ texts, rowTexts Statement }{
	texts: `SELECT "messageId", "chatId", "name", "content" FROM "messages_fts" WHERE "messageId" IN ({list})`,
	rowTexts: `SELECT f."messageId", f."chatId", f."name", f."content" FROM "lineage_messages" k ` +
		`JOIN "messages_fts" f ON f."rowid" = k."row" WHERE k."messageId" IN ({list}) AND k."hasText" = 1`,
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
		rows[i] = []any{m.ID, m.ChatID, m.Name, c.w.DB.fitting(form.Searched(m.Data, m.Name))}
	}
	return rows
}

// blockRows returns the rows of blocks. For a bare block only the id is compared, because another
// scope may use the block.
func blockRows(b *batch) [][]any {
	var rows [][]any
	for _, id := range b.blockOrder {
		row := b.blocks[id]
		if isBare(row) && row[blockErased] == 0 {
			row = row[:1]
		}
		rows = append(rows, row)
	}
	return rows
}

// compareRows compares rows with those that a query finds by their keys.
func (c *comparer) compareRows(ctx context.Context, t *tables.Table, query Statement, rows [][]any) error {
	for part := range batches(rows, 200) {
		there, err := readList(ctx, c.w.DB, scanRow(t), query, keysOf(part))
		if err != nil {
			return err
		}
		has := byKey(there)
		for _, want := range part {
			d := Difference{Kind: Missing, Table: t.Name, ID: want[0].(string)}
			if got, found := has[d.ID]; found {
				c.count(t, d.ID)
				d.Kind = Different
				for _, i := range differences(t, want, got) {
					d.Columns = append(d.Columns, t.Columns[i])
				}
				if len(d.Columns) == 0 {
					continue
				}
			}
			if err := c.yield(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// remembered are the tables in which the rows that should be there are remembered.
var remembered = []*tables.Table{tables.Chats, tables.Branches, tables.Checkpoints, tables.Contexts, tables.Sets, tables.Values, tables.Summaries}

// count records that a row was found.
func (c *comparer) count(t *tables.Table, id string) {
	if !slices.Contains(remembered, t) {
		c.counts[t]++
		return
	}
	if c.found[t] == nil {
		c.found[t] = make(map[string]bool)
	}
	c.found[t][id] = true
}

// scanRow returns a function that scans the rows of a table.
func scanRow(t *tables.Table) func(*Rows) ([]any, error) {
	return func(rows *Rows) ([]any, error) {
		row, into := make([]any, len(t.Columns)), make([]any, len(t.Columns))
		texts := make(map[int]*json.RawMessage)
		for i := range row {
			if into[i] = &row[i]; isJSON(t.Name, t.Columns[i]) {
				texts[i] = new(json.RawMessage)
				into[i] = texts[i]
			}
		}
		err := rows.Scan(into...)
		for i, text := range texts {
			row[i] = jsonText(*text)
		}
		return row, err
	}
}

// byKey returns rows from a database by their keys.
func byKey(rows [][]any) map[string][]any {
	by := make(map[string][]any, len(rows))
	for _, row := range rows {
		by[plain(row[0])] = row
	}
	return by
}

// differences returns the columns in which a row differs from that in the database. Columns that it
// does not have are not compared, nor are spans that a collection may have deleted.
func differences(t *tables.Table, want, got []any) (columns []int) {
	for i := range want {
		if t.Columns[i] != "seen_span_id" && !sameValue(want[i], got[i], isJSON(t.Name, t.Columns[i])) {
			columns = append(columns, i)
		}
	}
	return columns
}

func isJSON(table, column string) bool {
	return table == "messages" && column == "data" || table == "chats" && column == "metadata"
}

// plain returns a value as text, independent of the driver's type.
func plain(v any) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case json.RawMessage:
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

// sameValue compares a parameter with the value read back. A nil slice is written as null; an empty
// body may be read as a nil slice, which is not null.
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
	return sameJSON(json.RawMessage(a), json.RawMessage(b))
}

func sameJSON(a, b json.RawMessage) bool { return chat.Message{Data: a}.Same(chat.Message{Data: b}) }

// comparedPage is the number of ids per query when searching for extra rows.
const comparedPage = 500

// extras yields rows without a counterpart in the store.
func (c *comparer) extras(ctx context.Context) error {
	list := documentedTables
	if !c.w.ChatsOnly {
		list = append(list[:len(list):len(list)], projectedTables...)
	}
	belongs := c.belonging(ctx)
	for _, t := range list {
		if t == tables.Users {
			continue // unused rows are not searched
		}
		if more, err := c.hasMore(ctx, t); err != nil {
			return err
		} else if !more {
			continue
		}
		for after := ""; ; {
			var ids []string
			ids, err := readAll(ctx, c.w.DB, scanString, sqlOf[t].page, after, comparedPage)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				break
			}
			after = ids[len(ids)-1]
			for _, id := range ids {
				var err error
				ok := c.found[t][id]
				if belongs[t] != nil {
					ok, err = belongs[t](id)
				}
				if err == nil && !ok {
					err = c.yield(Difference{Kind: Extra, Table: t.Name, ID: id})
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// hasMore reports whether a table may have more rows than those compared. Blocks belong to several
// threads.
func (c *comparer) hasMore(ctx context.Context, t *tables.Table) (more bool, err error) {
	if t == tables.Blocks {
		return true, nil
	}
	err = c.w.DB.Read(ctx, func(conn *Conn) error {
		var n int64
		_, err := conn.Get(ctx, sqlOf[t].count, nil, &n)
		more = n != max(c.counts[t], int64(len(c.found[t])))
		return err
	})
	return more, err
}
