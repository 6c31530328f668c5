package project

import (
	"context"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// batch is the content of the next transaction of a projection. First the steps in before run, then rows
// are inserted, in an order that satisfies references, then the steps in after run.
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

// step is a part of a transaction. If the transaction is retried, it runs again.
type step func(ctx context.Context, c *sqladapter.Conn) error

// wanted are the rows that a table should have with their keys or, if there is an owner, those that
// the owner should have.
type wanted struct {
	owner []any
	rows  [][]any
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

// exec returns a step that runs a statement.
func exec(s sqladapter.Statement, args ...any) step {
	return func(ctx context.Context, c *sqladapter.Conn) error {
		_, err := c.Exec(ctx, s, args...)
		return err
	}
}
