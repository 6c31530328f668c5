package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// windowLimit is the number of changed subjects and records at which a transaction ends. 0 is the default of the
// follower.
var windowLimit = 0

// follow brings the index to the current state of the store.
func (x *Index) follow(ctx context.Context, db *sql.DB) error {
	f := derived.Follower[*sql.Tx]{Store: x.store, Target: &target{x, db}, Commits: true, Limit: windowLimit, Progress: x.options.Progress}
	_, err := f.Run(ctx)
	return err
}

// target is the index as derived data. A window is one transaction.
type target struct {
	*Index
	db *sql.DB
}

// Mark implements derived.Target.
func (t *target) Mark(ctx context.Context) (m derived.Mark, err error) {
	var of []byte
	var at, id, seen, seenID int64
	err = t.db.QueryRowContext(ctx, `SELECT store, number, id, seen_number, seen_id, turn FROM meta`).Scan(&of, &at, &id, &seen, &seenID, &m.Turn)
	if err == nil && len(of) != len(m.Store) {
		err = fmt.Errorf("store %x: %w", of, errUseless)
	}
	if err != nil {
		return m, err
	}
	m.Store = structure.StoreID(of)
	m.At = lineage.Cursor{Number: uint64(at), ID: uint64(id)}
	m.Seen = lineage.Cursor{Number: uint64(seen), ID: uint64(seenID)}
	return m, nil
}

// Write implements derived.Target.
func (t *target) Write(ctx context.Context, do func(*sql.Tx) error) error {
	return patiently(ctx, func() error {
		tx, err := t.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := do(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Swap implements derived.Target.
func (t *target) Swap(ctx context.Context, tx *sql.Tx, was, is derived.Mark) (bool, error) {
	changed, err := tx.ExecContext(ctx, `UPDATE meta SET store = ?, number = ?, id = ?, seen_number = ?, seen_id = ?, turn = ? WHERE turn = ?`,
		is.Store[:], int64(is.At.Number), int64(is.At.ID), int64(is.Seen.Number), int64(is.Seen.ID), is.Turn, was.Turn)
	if err != nil {
		return false, err
	}
	n, err := changed.RowsAffected()
	return n == 1, err
}

// Apply implements derived.Target: it adds the steps of the commits, and then the state of the subjects that they
// changed.
func (t *target) Apply(ctx context.Context, w *derived.Window[*sql.Tx]) error {
	words := make(query.Terms)
	return w.Finish(ctx, func(tx *sql.Tx) error {
		f := &writer{
			snapshot: w.State, changes: w.Changes, last: w.To == w.Head, words: words, tx: tx, prepared: make(map[string]*sql.Stmt),
			runs: make(map[structure.RunID]int64), roles: make(map[role]int64), contents: make(map[textID]known),
			homes: make(map[structure.ThreadID]int64), moved: make(map[int64]bool),
		}
		_, err := f.get(ctx, `SELECT spans, texts, model, (SELECT IFNULL(MAX(number), 0) FROM runs),
			(SELECT IFNULL(MAX(number), 0) FROM threads), EXISTS (SELECT 1 FROM erased) FROM meta`, nil, &f.spans, &f.text, &f.model, &f.run, &f.thread, &f.erased)
		if err != nil {
			return err
		}
		for _, c := range w.Commits {
			if err := f.add(ctx, c); err != nil {
				return fmt.Errorf("commit %d: %w", c.Number, err)
			}
		}
		if err := f.settle(ctx); err != nil {
			return err
		}
		return f.exec(ctx, `UPDATE meta SET spans = ?, texts = ?`, f.spans, f.text)
	})
}

// writer applies a window in a transaction.
type writer struct {
	snapshot backend.Snapshot
	changes  *derived.Changes
	last     bool // no commits follow up to the snapshot
	words    query.Terms
	tx       *sql.Tx
	prepared map[string]*sql.Stmt

	spans, text int64 // the number of steps, and the highest number of a text
	model       string
	run, thread int64 // the highest numbers
	erased      bool  // table erased is not empty

	runs     map[structure.RunID]int64
	roles    map[role]int64
	contents map[textID]known
	homes    map[structure.ThreadID]int64 // of threads that exist
	moved    map[int64]bool               // runs whose reached may change
}

// prepare returns a prepared statement, cached for the transaction.
func (f *writer) prepare(ctx context.Context, statement string) (*sql.Stmt, error) {
	if s := f.prepared[statement]; s != nil {
		return s, nil
	}
	s, err := f.tx.PrepareContext(ctx, statement)
	if err == nil {
		f.prepared[statement] = s
	}
	return s, err
}

func (f *writer) exec(ctx context.Context, statement string, args ...any) error {
	s, err := f.prepare(ctx, statement)
	if err == nil {
		_, err = s.ExecContext(ctx, args...)
	}
	return err
}

// get reads one row. It returns false if there is none.
func (f *writer) get(ctx context.Context, statement string, args []any, into ...any) (bool, error) {
	s, err := f.prepare(ctx, statement)
	if err == nil {
		err = s.QueryRowContext(ctx, args...).Scan(into...)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// add indexes the runs and steps of a commit.
func (f *writer) add(ctx context.Context, c *structure.Commit) error {
	blocks := make(map[[32]byte]*structure.Block)
	for _, r := range c.Records {
		var err error
		switch r := r.(type) {
		case *structure.Block:
			blocks[r.ID] = r
		case *structure.Run:
			err = f.addRun(ctx, r)
		case *structure.Span:
			err = f.addSpan(ctx, r, blocks)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addRun adds a run. Its parent run is already indexed.
func (f *writer) addRun(ctx context.Context, r *structure.Run) error {
	var parent, thread int64
	var err error
	if !r.Parent.IsZero() {
		if parent, err = f.runNumber(ctx, r.Parent.Run); err != nil {
			return err
		}
	}
	if !r.Home.Thread.IsZero() {
		if thread, err = f.threadNumber(ctx, r.Home); err != nil {
			return err
		}
	}
	_, err = f.newRun(ctx, r.ID, parent, r.Parent.Seq, thread)
	return err
}

func (f *writer) newRun(ctx context.Context, id [16]byte, parent int64, after uint64, thread int64) (int64, error) {
	f.run++
	f.runs[structure.RunID(id)] = f.run
	f.moved[f.run] = true // the thread may keep its runs
	return f.run, f.exec(ctx, `INSERT INTO runs VALUES (?, ?, ?, ?, ?, 0, 0)`, f.run, id[:], parent, int64(after), thread)
}

// indexed returns the number of a run. It is 0 for a run of a later window.
func (f *writer) indexed(ctx context.Context, id structure.RunID) (int64, error) {
	n, err := f.runNumber(ctx, id)
	if errors.Is(err, errUseless) && !f.last {
		return 0, nil
	}
	return n, err
}

// runNumber returns the number of an indexed run.
func (f *writer) runNumber(ctx context.Context, id structure.RunID) (n int64, err error) {
	if n, known := f.runs[id]; known {
		return n, nil
	}
	found, err := f.get(ctx, `SELECT number FROM runs WHERE id = ?`, []any{id[:]}, &n)
	if err == nil && !found {
		err = fmt.Errorf("run %v is missing: %w", id, errUseless)
	}
	if err == nil {
		f.runs[id] = n
	}
	return n, err
}

// threadNumber returns the number of a home, adding it if necessary.
func (f *writer) threadNumber(ctx context.Context, h structure.Home) (n int64, err error) {
	found, err := f.get(ctx, `SELECT number FROM threads WHERE id = ? AND incarnation = ?`, []any{h.Thread[:], int64(h.Incarnation)}, &n)
	if found || err != nil {
		return n, err
	}
	f.thread++
	return f.thread, f.exec(ctx, `INSERT INTO threads VALUES (?, ?, ?, '', 0)`, f.thread, h.Thread[:], int64(h.Incarnation))
}
