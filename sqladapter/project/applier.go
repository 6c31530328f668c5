package project

import (
	"context"
	"database/sql"
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// applier applies one window of commits to the database.
type applier struct {
	*Projector
	state  backend.Snapshot
	window *derived.Window[*sqladapter.Conn]
	report *Report

	batch batch
	limit int
	// check, when not nil, gets each batch as for an empty database. Then nothing is written and there is no window.
	check func(context.Context, *batch) error
	// usages maps each run in the batch to its last span that is, or will be, in the database.
	usages map[string]uint64
	// places are the rows of contexts that are known to be in the database or the batch.
	places map[structure.ContextID]placed
	// first is set in the first pass, when all rows of the database are of this state. empty is set if there are none
	// yet.
	first, empty bool
	// leftOut has the scopes that the database cannot hold, with the reasons. leaving is set if there are others than
	// before.
	leftOut map[string]string
	leaving bool
	// careful is set to write each scope in a transaction of its own: see leftout.go.
	careful bool
	// valueOwners are the owners whose values are to be written.
	valueOwners map[structure.Owner]bool
}

// placed is a row of contexts that the database or the batch has.
type placed struct {
	id      string
	parent  sql.NullString
	remnant bool
}

// batchBytes is the approximate size of a transaction in bytes.
const batchBytes = 8 << 20

// flushFull writes the batch if it is full. The batch must be consistent with the state that it records.
func (w *applier) flushFull(ctx context.Context) error {
	if w.batch.n < w.limit && w.batch.bytes < batchBytes {
		return nil
	}
	return w.flush(ctx)
}

// flush writes the batch in a transaction.
func (w *applier) flush(ctx context.Context) error {
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
	if err := write(ctx, func(c *sqladapter.Conn) error { return writeBatch(ctx, c, b) }); err != nil {
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

// put adds rows that the table should have. fresh is set if the database has none of them. See batch.want for owner.
func (w *applier) put(fresh bool, t *tables.Table, owner []any, rows ...[]any) {
	if !fresh && w.check == nil {
		w.batch.want(t, owner, rows...)
		return
	}
	for _, row := range rows {
		w.batch.add(t, row...)
	}
}

// exists converts the error of a lookup: it returns false for ErrNotFound.
func exists(_ any, err error) (bool, error) {
	if errors.Is(err, lineage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
