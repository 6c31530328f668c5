package derivedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Pruning removes from the caller's tables what the store no longer has.
type Pruning struct {
	// Dead removes what the tables have of dead steps. Rows of table temp.dead say which these are: the steps of a run after one, of
	// which 0 stands for all. The runs, of which all steps are dead, are removed afterwards. Other processes add no steps of them.
	Dead func(ctx context.Context, p *Pruner) error
	// Prepare reads what the transaction needs in which the data becomes that of a state. The function that it returns runs in that
	// transaction. alone is set if no other process has written since Dead was called.
	Prepare func(ctx context.Context, q Querier, state backend.Snapshot) (func(ctx context.Context, f *Writer, alone bool) error, error)
	// Rest removes what nothing uses afterwards.
	Rest func(ctx context.Context, p *Pruner) error
	// Purge is a statement that removes what SQLite keeps of deleted rows of the caller's tables. PurgeSome does so for at most a
	// number of pages. It is repeated before, while it changes more than one row.
	Purge, PurgeSome string
}

// StepRows is the number of rows that a transaction looks at while a file is pruned, and SomePages the number of pages that one
// rewrites while the file shrinks. Other processes write in between. BetweenParts, if not nil, is called after each of these
// transactions. Tests change them.
var (
	StepRows     = 20_000
	SomePages    = 500
	BetweenParts func()
)

// After maxWriting of such transactions, there is a pause in which others get their turn: SQLite does not queue processes that
// write, but has them look again, after less than busyTimeout.
const (
	maxWriting = 200 * time.Millisecond
	partPause  = busyTimeout
)

var (
	errSparse  = errors.New("the file has less than half of the steps")
	errNoSpace = errors.New("the file cannot give back its space")
)

// pruneCache makes the cache of a connection small: a collection has used memory of its own before.
const pruneCache = `PRAGMA cache_size = -8000`

// Prune brings an existing file up to date, removes what the store no longer has, and gives back its space. Afterwards
// nothing of that is in the file or its companions. After an error it may be, and the caller removes the file.
func Prune(ctx context.Context, store *lineage.Store, dir string, c Config, u Updating, p Pruning) (err error) {
	path := filepath.Join(dir, c.Name)
	if _, err := os.Lstat(path); err != nil { // else it would be created
		return err
	}
	x := &File{store: store, path: path, config: c}
	if err := x.check(); err != nil {
		return err
	}
	// Only SQLite opens the file: closing it would release the locks of other handles in this process.
	var db *sql.DB
	if err := Patiently(ctx, func() (err error) { db, err = connect(ctx, path, &c); return err }); err != nil {
		return err
	}
	db.SetMaxOpenConns(1) // each has a cache
	defer func() { err = x.Ended(ctx, errors.Join(err, db.Close())) }()
	if _, err := db.ExecContext(ctx, pruneCache); err != nil {
		return err
	}
	t := &target{db: db, apply: u.Apply}
	pruner := &Pruner{store: store, db: db, target: t, pruning: p}
	if err := pruner.requireWorth(ctx); err != nil {
		return fmt.Errorf("%s: %w", c.Label, err)
	}
	follower := derived.Follower[*sql.Tx]{Store: store, Target: t, Commits: true, Limit: u.Limit, Progress: u.Progress, Prune: true}
	// Both passes bring the data up to date, because other processes may write in between.
	follow := func(prune func(context.Context, *derived.Window[*sql.Tx]) error) func(context.Context) error {
		return func(ctx context.Context) error {
			t.prune = prune
			_, err := follower.Run(ctx)
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		follow(pruner.find), pruner.dropDead, follow(pruner.finish), func(ctx context.Context) error { return p.Rest(ctx, pruner) }, pruner.shrink,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return syncFile(path + "-wal")
}

// syncFile makes durable that the log of SQLite, which has no locks, was truncated. SQLite has synced the file itself.
func syncFile(name string) error {
	f, err := vfs.OpenFile(name, os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Pruner prunes a file. Most of it is done in transactions that are short.
type Pruner struct {
	store   *lineage.Store
	db      *sql.DB
	target  *target
	pruning Pruning
	found   derived.Mark  // when the dead runs were found
	again   bool          // the last transaction was tried before
	writing time.Duration // how long transactions took since the last pause
}

// requireWorth returns an error if the file cannot be pruned, or if building it again costs less than bringing it up to date.
func (p *Pruner) requireWorth(ctx context.Context) error {
	var vacuum int
	if err := p.db.QueryRowContext(ctx, `PRAGMA auto_vacuum`).Scan(&vacuum); err != nil {
		return err
	}
	if vacuum != incremental {
		return errNoSpace
	}
	has, err := p.number(ctx, `SELECT IFNULL(SUM(last), 0) FROM runs WHERE length(id) = 16`)
	if err != nil {
		return err
	}
	stats, err := p.store.View().Stats(ctx)
	if err == nil && uint64(has) < stats.Spans/2 {
		err = errSparse
	}
	return err
}

// find finds the runs of commits of which the store has only a beginning, or nothing, and the threads that it does not have. That stays
// true: no collection runs meanwhile, and the place of a collected step is not used again.
func (p *Pruner) find(ctx context.Context, w *derived.Window[*sql.Tx]) error {
	for _, statement := range []string{
		`CREATE TEMP TABLE IF NOT EXISTS dead (run INTEGER PRIMARY KEY, after INTEGER NOT NULL)`, `DELETE FROM temp.dead`,
		`CREATE TEMP TABLE IF NOT EXISTS gone (thread INTEGER PRIMARY KEY)`, `DELETE FROM temp.gone`,
	} {
		if _, err := p.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	// Nobody adds what an earlier state has from here on.
	if err := w.Finish(ctx, nil); err != nil {
		return err
	}
	var err error
	if p.found, err = p.target.Mark(ctx); err != nil {
		return err
	}
	if err := p.findRuns(ctx); err != nil {
		return err
	}
	if err := p.findThreads(ctx); err != nil {
		return err
	}
	visible, err := p.number(ctx, `SELECT COUNT(*) FROM temp.dead d CROSS JOIN runs r ON r.number = d.run AND r.reached > 0 WHERE d.after = 0`)
	if err == nil && visible > 0 {
		err = fmt.Errorf("%d runs are visible that the store does not have: %w", visible, ErrUseless)
	}
	return err
}

// pageOfRuns is the number of runs, and of threads, that are read at once.
const pageOfRuns = 1000

// findRuns fills temp.dead.
func (p *Pruner) findRuns(ctx context.Context) error {
	type row struct {
		number, last int64
		id           []byte
	}
	for after := int64(0); ; {
		var page []row
		err := Each(ctx, p.db, func(scan func(...any) error) error {
			var r row
			err := scan(&r.number, &r.id, &r.last)
			page = append(page, r)
			return err
		}, `SELECT number, id, last FROM runs WHERE number > ? ORDER BY number LIMIT ?`, after, pageOfRuns)
		if err != nil || len(page) == 0 {
			return err
		}
		err = InState(ctx, p.store, func(state backend.Snapshot) error {
			for _, r := range page {
				if len(r.id) != len(structure.RunID{}) {
					continue
				}
				last, err := lastOf(ctx, state, structure.RunID(r.id))
				if err == nil && last < r.last {
					_, err = p.db.ExecContext(ctx, `INSERT INTO temp.dead VALUES (?, ?)`, r.number, max(last, 0))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		after = page[len(page)-1].number
	}
}

// InState calls do with the current state of a store. What was read from a file before is not newer: other processes may have brought
// the file up to date since its own state was read.
func InState(ctx context.Context, store *lineage.Store, do func(backend.Snapshot) error) error {
	state, err := store.View().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer state.Close()
	return do(state)
}

// lastOf returns the last step of a run, or -1 if there is no such run.
func lastOf(ctx context.Context, state backend.Snapshot, id structure.RunID) (int64, error) {
	last, err := state.Last(ctx, id)
	if IsGone(err) {
		return -1, nil
	}
	return int64(last.Seq), err
}

// findThreads fills temp.gone.
func (p *Pruner) findThreads(ctx context.Context) error {
	type row struct {
		number, incarnation int64
		id                  []byte
	}
	for after := int64(0); ; {
		var page []row
		err := Each(ctx, p.db, func(scan func(...any) error) error {
			var r row
			err := scan(&r.number, &r.incarnation, &r.id)
			page = append(page, r)
			return err
		}, `SELECT number, incarnation, id FROM threads WHERE number > ? ORDER BY number LIMIT ?`, after, pageOfRuns)
		if err != nil || len(page) == 0 {
			return err
		}
		err = InState(ctx, p.store, func(state backend.Snapshot) error {
			for _, r := range page {
				if len(r.id) != len(structure.ThreadID{}) {
					return fmt.Errorf("thread %x: %w", r.id, ErrUseless)
				}
				thread, err := state.Thread(ctx, structure.ThreadID(r.id))
				if err != nil && !IsGone(err) {
					return err
				}
				if err == nil && thread.Incarnation == uint64(r.incarnation) {
					continue
				}
				if _, err := p.db.ExecContext(ctx, `INSERT INTO temp.gone VALUES (?)`, r.number); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		after = page[len(page)-1].number
	}
}

// dropDead removes what the caller's tables have of dead steps, then dead runs, and then threads of which nothing is left. A run goes after
// its usages, because its number may be given again.
func (p *Pruner) dropDead(ctx context.Context) error {
	if err := p.pruning.Dead(ctx, p); err != nil {
		return err
	}
	err := p.InSteps(ctx, Keys{
		First: []any{int64(0)}, Next: `SELECT run FROM (SELECT run FROM temp.dead WHERE run > ?1 ORDER BY run LIMIT ?2) ORDER BY run DESC LIMIT 1`,
	}, `DELETE FROM runs WHERE number IN (SELECT run FROM temp.dead WHERE run > ?1 AND run <= ?2 AND after = 0)`)
	if err != nil {
		return err
	}
	return p.InSteps(ctx, Keys{
		First: []any{int64(0)}, Next: `SELECT thread FROM (SELECT thread FROM temp.gone WHERE thread > ?1 ORDER BY thread LIMIT ?2) ORDER BY thread DESC LIMIT 1`,
	}, `DELETE FROM threads WHERE number IN (SELECT thread FROM temp.gone WHERE thread > ?1 AND thread <= ?2)
		AND NOT EXISTS (SELECT 1 FROM runs WHERE thread = threads.number AND thread > 0) AND NOT EXISTS (SELECT 1 FROM tips WHERE thread = threads.number)`)
}

// finish makes the data that of the state of a window.
func (p *Pruner) finish(ctx context.Context, w *derived.Window[*sql.Tx]) (err error) {
	var own func(context.Context, *Writer, bool) error
	within := p.again // others wrote while it was prepared
	p.again = true
	if !within {
		if own, err = p.pruning.Prepare(ctx, p.db, w.State); err != nil {
			return err
		}
	}
	return w.Finish(ctx, func(tx *sql.Tx) error {
		if within {
			if own, err = p.pruning.Prepare(ctx, tx, w.State); err != nil {
				return err
			}
		}
		f, err := NewWriter(ctx, w, tx)
		if err != nil {
			return err
		}
		var version int64
		if _, err := f.Get(ctx, `SELECT version FROM meta`, nil, &version); err != nil {
			return err
		}
		if err := f.dropEnds(ctx); err != nil {
			return err
		}
		return own(ctx, f, version == p.found.Version+1)
	})
}

// dropEnds removes the ends of runs in temp.dead of which a beginning lives.
func (f *Writer) dropEnds(ctx context.Context) error {
	const ends = ` FROM temp.dead d CROSS JOIN runs r ON r.number = d.run AND r.reached > d.after WHERE d.after > 0`
	if err := f.MoveAll(ctx, `SELECT d.run`+ends); err != nil {
		return err
	}
	for _, statement := range []string{
		`DELETE FROM tips WHERE rowid IN (SELECT p.rowid FROM temp.dead d CROSS JOIN tips p ON p.run = d.run AND p.seq > d.after WHERE d.after > 0)`,
		`UPDATE runs SET last = (SELECT after FROM temp.dead WHERE run = number) WHERE number IN (SELECT run FROM temp.dead WHERE after > 0)`,
	} {
		if err := f.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return f.Reach(ctx)
}

// Keys are the keys of a table in their order.
type Keys struct {
	// First is less than all keys.
	First []any
	// Next is a query for the last of some keys after one. Its arguments are the columns of that key, and the number of rows.
	Next string
}

// InSteps executes statements for one range of keys after the other, each in a transaction. Their arguments are the key before the range
// and the last key in it.
func (p *Pruner) InSteps(ctx context.Context, k Keys, statements ...string) error {
	for after := k.First; ; {
		last, into := make([]any, len(after)), make([]any, len(after))
		for i := range last {
			into[i] = &last[i]
		}
		err := Patiently(ctx, func() error {
			return p.db.QueryRowContext(ctx, k.Next, slices.Concat(after, []any{StepRows})...).Scan(into...)
		})
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = p.Step(ctx, slices.Concat(after, last), statements...)
		}
		if err != nil {
			return err
		}
		after = last
	}
}

// Step executes statements in a transaction, with the same arguments.
func (p *Pruner) Step(ctx context.Context, args []any, statements ...string) error {
	return p.part(ctx, func() error {
		return p.target.Write(ctx, func(tx *sql.Tx) error {
			for _, statement := range statements {
				if _, err := tx.ExecContext(ctx, statement, args...); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// part calls write, which writes in one transaction, and lets other processes write.
func (p *Pruner) part(ctx context.Context, write func() error) error {
	begun := time.Now()
	if err := write(); err != nil {
		return err
	}
	if BetweenParts != nil {
		BetweenParts()
	}
	if p.writing += time.Since(begun); p.writing < maxWriting {
		return nil
	}
	p.writing = 0
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(partPause):
		return nil
	}
}

// shrink removes what the file keeps of deleted rows, and what the log of SQLite has of them. Most of that is done in parts. What is
// left then, because others wrote meanwhile, is done at once.
func (p *Pruner) shrink(ctx context.Context) error {
	pages, err := p.number(ctx, `PRAGMA page_count`)
	if err != nil {
		return err
	}
	parts := 2*pages/SomePages + 10 // others may add to what is left, but not without end
	for changed := 2; changed > 1 && parts > 0; parts-- {
		before, err := p.number(ctx, `SELECT total_changes()`)
		if err == nil {
			err = p.exec(ctx, p.pruning.PurgeSome, SomePages)
		}
		if err != nil {
			return err
		}
		after, err := p.number(ctx, `SELECT total_changes()`)
		if err != nil {
			return err
		}
		changed = after - before
	}
	if err := p.exec(ctx, p.pruning.Purge); err != nil {
		return err
	}
	for parts := pages/SomePages + 1; parts > 0; parts-- {
		free, err := p.number(ctx, `PRAGMA freelist_count`)
		if err != nil {
			return err
		}
		if free == 0 {
			break
		}
		if err := p.exec(ctx, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, SomePages)); err != nil {
			return err
		}
	}
	if err := p.exec(ctx, `PRAGMA incremental_vacuum`); err != nil {
		return err
	}
	return Checkpoint(ctx, p.db)
}

// exec executes a statement in a transaction of its own.
func (p *Pruner) exec(ctx context.Context, statement string, args ...any) error {
	return p.part(ctx, func() error {
		return Patiently(ctx, func() error { _, err := p.db.ExecContext(ctx, statement, args...); return err })
	})
}

// number returns the number that a query returns.
func (p *Pruner) number(ctx context.Context, statement string) (n int, err error) {
	err = Patiently(ctx, func() error { return p.db.QueryRowContext(ctx, statement).Scan(&n) })
	return n, err
}
