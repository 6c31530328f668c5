package derivedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Writer applies a window in a transaction, and keeps the tables of runs, threads and tips. The caller calls Add, Settle and
// then Reach, and keeps its own tables in between.
type Writer struct {
	Snapshot backend.Snapshot
	Changes  *derived.Changes
	// Sees reports whether the tip of a context with the given metadata makes messages visible. Default: always.
	Sees func(metadata []byte) bool
	// Reached, when not nil, is called when the last visible step of a run has changed.
	Reached func(ctx context.Context, run, was, reached int64) error

	last     bool // no commits follow up to the snapshot
	tx       *sql.Tx
	prepared map[string]*sql.Stmt

	run, thread int64 // the highest numbers so far
	before      int64 // the highest number of a run before the transaction
	runs        map[structure.RunID]int64
	homes       map[structure.ThreadID]int64 // of threads that exist
	numbers     map[structure.Home]int64
	isNew       map[structure.ThreadID]bool // see IsNew
	homeOf      map[structure.RunID]structure.Home
	moved       map[int64]bool // runs whose reached may change
	threads     map[structure.ThreadID]*structure.Thread
	contexts    map[structure.ContextID]backend.Context
}

// NewWriter returns a writer for a transaction of a window.
func NewWriter(ctx context.Context, w *derived.Window[*sql.Tx], tx *sql.Tx) (*Writer, error) {
	f := &Writer{
		Snapshot: w.State, Changes: w.Changes, last: w.To == w.Head, tx: tx, prepared: make(map[string]*sql.Stmt),
		runs: make(map[structure.RunID]int64), homes: make(map[structure.ThreadID]int64), homeOf: make(map[structure.RunID]structure.Home),
		numbers: make(map[structure.Home]int64), isNew: make(map[structure.ThreadID]bool), moved: make(map[int64]bool),
		threads: make(map[structure.ThreadID]*structure.Thread), contexts: make(map[structure.ContextID]backend.Context),
	}
	_, err := f.Get(ctx, `SELECT (SELECT IFNULL(MAX(number), 0) FROM runs), (SELECT IFNULL(MAX(number), 0) FROM threads)`, nil, &f.run, &f.thread)
	f.before = f.run
	return f, err
}

// prepare returns a prepared statement, cached for the transaction.
func (f *Writer) prepare(ctx context.Context, statement string) (*sql.Stmt, error) {
	if s := f.prepared[statement]; s != nil {
		return s, nil
	}
	s, err := f.tx.PrepareContext(ctx, statement)
	if err == nil {
		f.prepared[statement] = s
	}
	return s, err
}

func (f *Writer) Exec(ctx context.Context, statement string, args ...any) error {
	s, err := f.prepare(ctx, statement)
	if err == nil {
		_, err = s.ExecContext(ctx, args...)
	}
	return err
}

// Get reads one row. It returns false if there is none.
func (f *Writer) Get(ctx context.Context, statement string, args []any, into ...any) (bool, error) {
	s, err := f.prepare(ctx, statement)
	if err == nil {
		err = s.QueryRowContext(ctx, args...).Scan(into...)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Each calls do for each row of a query. do must not run the same query again: see the function Each.
func (f *Writer) Each(ctx context.Context, do func(scan func(...any) error) error, statement string, args ...any) error {
	s, err := f.prepare(ctx, statement)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return eachOf(rows, do)
}

// Blobs returns the values of a column.
func (f *Writer) Blobs(ctx context.Context, statement string, args ...any) (all [][]byte, err error) {
	err = f.Each(ctx, func(scan func(...any) error) error {
		var b []byte
		err := scan(&b)
		all = append(all, b)
		return err
	}, statement, args...)
	return all, err
}

// Add adds the runs of commits and calls span for each of their spans, with the blocks of its commit. span may add
// blocks that it reads itself.
func (f *Writer) Add(ctx context.Context, commits []*structure.Commit, span func(context.Context, *structure.Span, map[content.ID]*structure.Block) error) error {
	blocks := make(map[content.ID]*structure.Block)
	for _, c := range commits {
		clear(blocks)
		for _, r := range c.Records {
			var err error
			switch r := r.(type) {
			case *structure.Block:
				blocks[r.ID] = r
			case *structure.Run:
				f.homeOf[r.ID] = r.Home
				err = f.addRun(ctx, r)
			case *structure.Span:
				err = span(ctx, r, blocks)
			}
			if err != nil {
				return fmt.Errorf("commit %d: %w", c.Number, err)
			}
		}
	}
	return nil
}

// Home returns the home of a run, zero if the run is gone.
func (f *Writer) Home(ctx context.Context, run structure.RunID) (structure.Home, error) {
	if h, known := f.homeOf[run]; known {
		return h, nil
	}
	info, err := f.Snapshot.Run(ctx, run)
	if IsGone(err) {
		err = nil
	}
	if err == nil {
		f.homeOf[run] = info.Home
	}
	return info.Home, err
}

// addRun adds a run. Its parent run is already indexed.
func (f *Writer) addRun(ctx context.Context, r *structure.Run) error {
	var parent, thread int64
	var err error
	if !r.Parent.IsZero() {
		if parent, err = f.RunNumber(ctx, r.Parent.Run); err != nil {
			return err
		}
	}
	if !r.Home.Thread.IsZero() {
		if thread, err = f.ThreadNumber(ctx, r.Home); err != nil {
			return err
		}
	}
	f.runs[r.ID], err = f.NewRun(ctx, r.ID[:], parent, r.Parent.Seq, thread)
	return err
}

// NewRun adds a run. Its key is its id, or that of something that a run stands for.
func (f *Writer) NewRun(ctx context.Context, key []byte, parent int64, after uint64, thread int64) (int64, error) {
	f.run++
	f.moved[f.run] = true // the thread may keep its runs
	return f.run, f.Exec(ctx, `INSERT INTO runs VALUES (?, ?, ?, ?, ?, 0, 0)`, f.run, key, parent, int64(after), thread)
}

// Indexed returns the number of a run, or 0 for a run of a later window.
func (f *Writer) Indexed(ctx context.Context, id structure.RunID) (int64, error) {
	n, err := f.RunNumber(ctx, id)
	if errors.Is(err, ErrUseless) && !f.last {
		return 0, nil
	}
	return n, err
}

// RunNumber returns the number of an indexed run.
func (f *Writer) RunNumber(ctx context.Context, id structure.RunID) (n int64, err error) {
	if n, known := f.runs[id]; known {
		return n, nil
	}
	found, err := f.Get(ctx, `SELECT number FROM runs WHERE id = ?`, []any{id[:]}, &n)
	if err == nil && !found {
		err = fmt.Errorf("run %v is missing: %w", id, ErrUseless)
	}
	if err == nil {
		f.runs[id] = n
	}
	return n, err
}

// ThreadNumber returns the number of a home, adding it if necessary.
func (f *Writer) ThreadNumber(ctx context.Context, h structure.Home) (n int64, err error) {
	if n, known := f.numbers[h]; known {
		return n, nil
	}
	others := false
	err = f.Each(ctx, func(scan func(...any) error) error {
		var number, incarnation int64
		err := scan(&number, &incarnation)
		others = true
		if incarnation == int64(h.Incarnation) {
			n = number
		}
		return err
	}, `SELECT number, incarnation FROM threads WHERE id = ?`, h.Thread[:])
	if err != nil {
		return 0, err
	}
	if n == 0 {
		f.thread++
		n = f.thread
		f.isNew[h.Thread] = !others
		if err := f.Exec(ctx, `INSERT INTO threads VALUES (?, ?, ?, '', 0)`, n, h.Thread[:], int64(h.Incarnation)); err != nil {
			return 0, err
		}
	}
	f.numbers[h] = n
	return n, nil
}

// IsNew reports whether the thread first appears in this window: then the tables have only what this transaction has
// added to it.
func (f *Writer) IsNew(id structure.ThreadID) bool { return f.isNew[id] }

// IsNewRun reports whether the transaction has added a run.
func (f *Writer) IsNewRun(run int64) bool { return run > f.before }

// IsGone reports whether an error says that something is not in the snapshot.
func IsGone(err error) bool { return errors.Is(err, lineage.ErrNotFound) }
