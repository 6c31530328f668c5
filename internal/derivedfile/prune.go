package derivedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/structure"
)

// Pruning removes from the caller's tables what the store no longer has.
type Pruning struct {
	// Prepare reads what the transaction needs from the file and the store. The function that it returns runs in the
	// transaction: rows of table temp.dead say which steps of which runs are gone, namely those after a step. It may
	// add runs that the caller's tables made.
	Prepare func(ctx context.Context, q Querier, state backend.Snapshot) (func(context.Context, *Writer) error, error)
	// Purge is a statement that removes what SQLite keeps of deleted rows of the caller's tables. PurgeSome does so for at most a
	// number of pages. It is repeated before, while it changes more than one row.
	Purge, PurgeSome string
}

// SomePages is the number of pages that a transaction rewrites while a file shrinks. Other processes write in between. BetweenParts, if
// not nil, is called there. Tests change both.
var (
	SomePages    = 2000
	BetweenParts func()
)

var (
	errSparse  = errors.New("the file has less than half of the commits")
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
	pruning := &pruner{db, p}
	t := &target{db: db, apply: u.Apply, prune: pruning.prune}
	if err := pruning.requireWorth(ctx, store, t); err != nil {
		return fmt.Errorf("%s: %w", c.Label, err)
	}
	f := derived.Follower[*sql.Tx]{Store: store, Target: t, Commits: true, Limit: u.Limit, Progress: u.Progress, Prune: true}
	if _, err := f.Run(ctx); err != nil {
		return err
	}
	if err := pruning.shrink(ctx); err != nil {
		return err
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

// pruner prunes a file.
type pruner struct {
	db *sql.DB
	Pruning
}

// requireWorth returns an error if the file cannot be pruned, or if building it again costs less than bringing it up to date.
func (p *pruner) requireWorth(ctx context.Context, store *lineage.Store, t *target) error {
	var vacuum int
	if err := p.db.QueryRowContext(ctx, `PRAGMA auto_vacuum`).Scan(&vacuum); err != nil {
		return err
	}
	if vacuum != incremental {
		return errNoSpace
	}
	mark, err := t.Mark(ctx)
	if err != nil {
		return err
	}
	head, err := store.View().Head(ctx)
	if err == nil && mark.At.Number < head.Number/2 {
		err = errSparse
	}
	return err
}

// deadRun is a run that the store has up to a step: 0 if it has nothing of the run.
type deadRun struct{ number, after int64 }

// prune removes what the snapshot of a window does not have.
func (p *pruner) prune(ctx context.Context, w *derived.Window[*sql.Tx]) error {
	dead, err := p.deadRuns(ctx, w.State)
	if err != nil {
		return err
	}
	homes, err := p.deadHomes(ctx, w.State)
	if err != nil {
		return err
	}
	own, err := p.Prepare(ctx, p.db, w.State)
	if err != nil {
		return err
	}
	return w.Finish(ctx, func(tx *sql.Tx) error {
		f, err := NewWriter(ctx, w, tx)
		if err != nil {
			return err
		}
		for _, statement := range []string{`CREATE TEMP TABLE IF NOT EXISTS dead (run INTEGER PRIMARY KEY, after INTEGER NOT NULL)`, `DELETE FROM temp.dead`} {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		for _, r := range dead {
			if err := f.Exec(ctx, `INSERT INTO temp.dead VALUES (?, ?)`, r.number, r.after); err != nil {
				return err
			}
		}
		if err := own(ctx, f); err != nil {
			return err
		}
		return f.dropDead(ctx, homes)
	})
}

// pageOfRuns is the number of runs, and of threads, that are read at once.
const pageOfRuns = 1000

// deadRuns returns the runs of commits of which a state has only a beginning, or nothing.
func (p *pruner) deadRuns(ctx context.Context, state backend.Snapshot) (dead []deadRun, err error) {
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
			return dead, err
		}
		for _, r := range page {
			if after = r.number; len(r.id) != len(structure.RunID{}) {
				continue
			}
			last, err := lastOf(ctx, state, structure.RunID(r.id))
			if err != nil {
				return nil, err
			}
			if last < 0 {
				dead = append(dead, deadRun{number: r.number})
			} else if last < r.last {
				dead = append(dead, deadRun{r.number, last})
			}
		}
	}
}

// lastOf returns the last step of a run, or -1 if there is no such run.
func lastOf(ctx context.Context, state backend.Snapshot, id structure.RunID) (int64, error) {
	last, err := state.Last(ctx, id)
	if IsGone(err) {
		return -1, nil
	}
	return int64(last.Seq), err
}

// deadHomes returns the numbers of threads that a state does not have.
func (p *pruner) deadHomes(ctx context.Context, state backend.Snapshot) (dead []int64, err error) {
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
			return dead, err
		}
		for _, r := range page {
			if after = r.number; len(r.id) != len(structure.ThreadID{}) {
				return nil, fmt.Errorf("thread %x: %w", r.id, ErrUseless)
			}
			thread, err := state.Thread(ctx, structure.ThreadID(r.id))
			if err != nil && !IsGone(err) {
				return nil, err
			}
			if err != nil || thread.Incarnation != uint64(r.incarnation) {
				dead = append(dead, r.number)
			}
		}
	}
}

// dropDead removes the runs in temp.dead and what refers to them, and threads of which nothing is left.
func (f *Writer) dropDead(ctx context.Context, homes []int64) error {
	const those = ` IN (SELECT run FROM temp.dead WHERE after = 0)`
	// The table is small, or most of what follows is in it.
	for _, statement := range []string{
		`SELECT r.parent FROM temp.dead d JOIN runs r ON r.number = d.run WHERE r.parent > 0`, `SELECT run FROM temp.dead WHERE after > 0`,
	} {
		if err := f.MoveAll(ctx, statement); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		`DELETE FROM tips WHERE EXISTS (SELECT 1 FROM temp.dead d WHERE d.run = tips.run AND tips.seq > d.after)`,
		`UPDATE runs SET last = (SELECT after FROM temp.dead WHERE run = number) WHERE number IN (SELECT run FROM temp.dead WHERE after > 0)`,
		`DELETE FROM runs WHERE number` + those,
	} {
		if err := f.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for _, number := range homes {
		err := f.Exec(ctx, `DELETE FROM threads WHERE number = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE thread = ?1 AND thread > 0) AND NOT EXISTS (SELECT 1 FROM tips WHERE thread = ?1)`, number)
		if err != nil {
			return err
		}
	}
	return f.Reach(ctx)
}

// shrink removes what the file keeps of deleted rows, and what the log of SQLite has of them. Most of that is done in parts. What is
// left then, because others wrote meanwhile, is done at once.
func (p *pruner) shrink(ctx context.Context) error {
	pages, err := p.number(ctx, `PRAGMA page_count`)
	if err != nil {
		return err
	}
	parts := 2*pages/SomePages + 10 // others may add to what is left, but not without end
	for changed := 2; changed > 1 && parts > 0; parts-- {
		before, err := p.number(ctx, `SELECT total_changes()`)
		if err == nil {
			err = p.exec(ctx, p.PurgeSome, SomePages)
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
	if err := p.exec(ctx, p.Purge); err != nil {
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
func (p *pruner) exec(ctx context.Context, statement string, args ...any) error {
	if BetweenParts != nil {
		BetweenParts()
	}
	return Patiently(ctx, func() error { _, err := p.db.ExecContext(ctx, statement, args...); return err })
}

// number returns the number that a query returns.
func (p *pruner) number(ctx context.Context, statement string) (n int, err error) {
	err = Patiently(ctx, func() error { return p.db.QueryRowContext(ctx, statement).Scan(&n) })
	return n, err
}
