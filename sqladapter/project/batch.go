package project

import (
	"context"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
)

// batch is the content of the next transaction of a projection. First the operations in before run. Then rows are
// inserted, in an order that satisfies references. Then the operations in after run.
type batch struct {
	// rows are inserted. missing are inserted unless their key exists. wanted are compared with the rows in the
	// database.
	rows       map[*tables.Table][][]any
	missing    map[*tables.Table]map[string][]any
	wanted     map[*tables.Table][]wanted
	blocks     map[string][]any
	blockOrder []string
	messages   []chat.Message

	before, after []operation
	// n and bytes are the approximate number and size of rows.
	n, bytes int
	// added, changed and removed count messages.
	added, changed, removed int
	finish                  bool
}

// operation is a part of a transaction. If the transaction is retried, it runs again.
type operation func(ctx context.Context, c *sqladapter.Conn) error

// wanted are rows that a table should have. With an owner, they are all rows that it should have for the owner.
// Otherwise they are the only rows for their keys.
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

// needed returns the rows given to need, ordered by key.
func (b *batch) needed(t *tables.Table) [][]any {
	rows := make([][]any, 0, len(b.missing[t]))
	for _, key := range slices.Sorted(maps.Keys(b.missing[t])) {
		rows = append(rows, b.missing[t][key])
	}
	return rows
}

// want adds rows that the table should have in place of any rows with the same keys. owner, when not nil, has values
// for the columns Table.Of. Other rows with these values are deleted.
func (b *batch) want(t *tables.Table, owner []any, rows ...[]any) {
	if b.wanted == nil {
		b.wanted = make(map[*tables.Table][]wanted)
	}
	if owner != nil || len(rows) > 0 {
		b.wanted[t] = append(b.wanted[t], wanted{owner, rows})
		b.n += 1 + len(rows)
	}
}

// exec returns an operation that runs a statement.
func exec(s sqladapter.Statement, args ...any) operation {
	return func(ctx context.Context, c *sqladapter.Conn) error {
		_, err := c.Exec(ctx, s, args...)
		return err
	}
}
