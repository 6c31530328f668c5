package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Size of a transaction at which the next one begins.
const (
	batchBytes   = 8 << 20
	batchRecords = 20_000
)

// errOvertaken is returned when another process has updated the index meanwhile. A pass with a newer snapshot
// continues.
var errOvertaken = errors.New("another process has updated the index")

// follow brings the index to the current state of the store.
func (x *Index) follow(ctx context.Context, db *sql.DB) error {
	for {
		err := x.pass(ctx, db)
		if !errors.Is(err, errOvertaken) && !errors.Is(err, lineage.ErrExpired) {
			return err
		}
	}
}

// pass indexes the commits after the last indexed one up to those of a snapshot, in transactions, and finally
// the state of the subjects that they changed. The position never goes back: each transaction reads it first,
// and does nothing if it is not as expected.
func (x *Index) pass(ctx context.Context, db *sql.DB) error {
	snapshot, err := x.store.View().Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snapshot.Close()
	head, err := snapshot.Head(ctx)
	if err != nil {
		return err
	}
	m, err := x.mark(ctx, db)
	if err != nil {
		return err
	}
	if done, err := x.has(ctx, m, head); done || err != nil {
		return err
	}
	f := &follower{snapshot: snapshot, words: make(query.Terms)}
	defer func() { f.rollback() }()
	if err := f.begin(ctx, x, db, m.at); err != nil {
		return err
	}
	first := f.at.Number
	for c, err := range x.store.View().Feed(ctx, f.at) {
		if err != nil {
			return err
		}
		if c.Number > head.Number {
			break
		}
		if f.bytes > batchBytes || f.records > batchRecords {
			if err := f.commit(ctx); err != nil {
				return err
			}
			if x.options.Progress != nil {
				x.options.Progress(f.at.Number-first, head.Number-first)
			}
			if err := f.begin(ctx, x, db, f.at); err != nil {
				return err
			}
		}
		if err := f.add(ctx, c); err != nil {
			return fmt.Errorf("commit %d: %w", c.Number, err)
		}
		f.at = lineage.Cursor{Number: c.Number, ID: c.ID}
	}
	f.at = head
	if err := f.settle(ctx); err != nil {
		return err
	}
	return f.commit(ctx)
}

// has reports whether the index has everything of a snapshot. If it has a part of what followed, the error is
// errOvertaken.
func (x *Index) has(ctx context.Context, m mark, head lineage.Cursor) (bool, error) {
	if m.at.Number < head.Number {
		return false, nil
	}
	for _, err := range x.store.View().Feed(ctx, m.at) { // another history may have a commit with that number
		if err != nil {
			return false, err
		}
		break
	}
	if !m.settled && m.at != head {
		return false, errOvertaken
	}
	return m.settled, nil
}

// mark is the state of the index: the last indexed commit, the number of steps, the highest number of
// a text, the model of the embeddings, and whether no subject is to be settled.
type mark struct {
	at          lineage.Cursor
	spans, text int64
	model       string
	settled     bool
}

// mark returns an error if the index belongs to another store.
func (x *Index) mark(ctx context.Context, q querier) (m mark, err error) {
	var of []byte
	var number, id int64
	err = q.QueryRowContext(ctx, `SELECT store, number, id, spans, texts, model, NOT EXISTS (SELECT 1 FROM changed) FROM meta`).
		Scan(&of, &number, &id, &m.spans, &m.text, &m.model, &m.settled)
	if errors.Is(err, sql.ErrNoRows) {
		return mark{settled: true}, nil
	}
	if is := x.store.ID(); err == nil && string(of) != string(is[:]) {
		err = fmt.Errorf("of store %x: %w", of, errUseless)
	}
	m.at = lineage.Cursor{Number: uint64(number), ID: uint64(id)}
	return m, err
}

// follower adds commits to the index.
type follower struct {
	snapshot backend.Snapshot
	words    query.Terms
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
	store    structure.StoreID

	mark
	bytes    int
	records  int
	run      int64 // the highest numbers of a run and a thread
	thread   int64
	erased   bool // table erased is not empty
	changed  map[string]bool
	runs     map[structure.RunID]int64
	roles    map[role]int64
	contents map[textID]known
}

// begin begins a transaction, in which the index must be at a position.
func (f *follower) begin(ctx context.Context, x *Index, db *sql.DB, at lineage.Cursor) (err error) {
	if f.tx, err = db.BeginTx(ctx, nil); err != nil {
		return err
	}
	f.prepared, f.bytes, f.records, f.store = make(map[string]*sql.Stmt), 0, 0, x.store.ID()
	f.changed, f.runs, f.roles, f.contents = make(map[string]bool), make(map[structure.RunID]int64), make(map[role]int64), make(map[textID]known)
	if f.mark, err = x.mark(ctx, f.tx); err != nil {
		return err
	}
	if f.at != at {
		return errOvertaken
	}
	return f.tx.QueryRowContext(ctx, `SELECT (SELECT IFNULL(MAX(number), 0) FROM runs),
		(SELECT IFNULL(MAX(number), 0) FROM threads), EXISTS (SELECT 1 FROM erased)`).Scan(&f.run, &f.thread, &f.erased)
}

// commit commits the transaction.
func (f *follower) commit(ctx context.Context) error {
	for subject := range f.changed {
		if err := f.exec(ctx, `INSERT OR IGNORE INTO changed VALUES (?)`, []byte(subject)); err != nil {
			return err
		}
	}
	err := f.exec(ctx, `INSERT OR REPLACE INTO meta VALUES (1, ?, ?, ?, ?, ?, ?)`, f.store[:], int64(f.at.Number), int64(f.at.ID), f.spans, f.text, f.model)
	if err != nil {
		return err
	}
	tx := f.tx
	f.tx = nil
	return tx.Commit()
}

func (f *follower) rollback() {
	if f.tx != nil {
		_ = f.tx.Rollback()
	}
}

// prepare returns a prepared statement, cached for the transaction.
func (f *follower) prepare(ctx context.Context, statement string) (*sql.Stmt, error) {
	if s := f.prepared[statement]; s != nil {
		return s, nil
	}
	s, err := f.tx.PrepareContext(ctx, statement)
	if err == nil {
		f.prepared[statement] = s
	}
	return s, err
}

func (f *follower) exec(ctx context.Context, statement string, args ...any) error {
	s, err := f.prepare(ctx, statement)
	if err == nil {
		_, err = s.ExecContext(ctx, args...)
	}
	return err
}

// get reads one row. It returns false if there is none.
func (f *follower) get(ctx context.Context, statement string, args []any, into ...any) (bool, error) {
	s, err := f.prepare(ctx, statement)
	if err == nil {
		err = s.QueryRowContext(ctx, args...).Scan(into...)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// Kinds of changed subjects.
const (
	changedThread     = 't'
	changedContext    = 'c'
	changedCheckpoint = 'k'
	changedSummaries  = 's'
	changedContent    = 'x'
)

func (f *follower) note(kind byte, parts ...[]byte) {
	subject := string(kind)
	for _, p := range parts {
		subject += string(p)
	}
	f.changed[subject] = true
}

// add indexes a commit.
func (f *follower) add(ctx context.Context, c *structure.Commit) error {
	blocks := make(map[[32]byte]*structure.Block)
	for _, r := range c.Records {
		f.records++
		var err error
		switch r := r.(type) {
		case *structure.Block:
			blocks[r.ID] = r
			err = f.stored(ctx, r)
		case *structure.Run:
			err = f.addRun(ctx, r)
		case *structure.Span:
			err = f.addSpan(ctx, r, blocks)
		case *structure.Thread:
			f.note(changedThread, r.ID[:])
		case *structure.Context:
			f.note(changedContext, r.ID[:])
		case *structure.Tip:
			f.note(changedContext, r.Context[:])
		case *structure.Checkpoint:
			f.note(changedCheckpoint, r.Thread[:], []byte(r.Name))
		case *structure.Summary:
			f.note(changedSummaries, r.Context[:])
		case *structure.Deletion:
			f.noteDeletion(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *follower) noteDeletion(r *structure.Deletion) {
	switch r.Subject {
	case structure.KindThread:
		f.note(changedThread, r.Thread[:])
	case structure.KindContext:
		f.note(changedContext, r.Context[:])
		f.note(changedSummaries, r.Context[:])
	case structure.KindCheckpoint:
		f.note(changedCheckpoint, r.Thread[:], []byte(r.Name))
	case structure.KindSummary:
		f.note(changedSummaries, r.Context[:])
	case structure.KindBlock:
		f.note(changedContent, r.Content[:])
	}
}

// stored records that erased content was stored again.
func (f *follower) stored(ctx context.Context, b *structure.Block) error {
	if !f.erased {
		return nil
	}
	var one int
	was, err := f.get(ctx, `SELECT 1 FROM erased WHERE id = ?`, []any{b.ID[:]}, &one)
	if was {
		f.note(changedContent, b.ID[:])
	}
	return err
}

// addRun adds a run. Its parent run is already indexed.
func (f *follower) addRun(ctx context.Context, r *structure.Run) error {
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
		f.note(changedThread, r.Home.Thread[:]) // the thread may keep its runs
	}
	_, err = f.newRun(ctx, r.ID, parent, r.Parent.Seq, thread)
	return err
}

func (f *follower) newRun(ctx context.Context, id [16]byte, parent int64, after uint64, thread int64) (int64, error) {
	f.run++
	f.runs[structure.RunID(id)] = f.run
	return f.run, f.exec(ctx, `INSERT INTO runs VALUES (?, ?, ?, ?, ?, 0, 0)`, f.run, id[:], parent, int64(after), thread)
}

// runNumber returns the number of an indexed run.
func (f *follower) runNumber(ctx context.Context, id structure.RunID) (n int64, err error) {
	if n, known := f.runs[id]; known {
		return n, nil
	}
	found, err := f.get(ctx, `SELECT number FROM runs WHERE id = ?`, []any{id[:]}, &n)
	if err == nil && !found {
		err = fmt.Errorf("run %v is missing: %w", id, errUseless)
	}
	f.runs[id] = n
	return n, err
}

// threadNumber returns the number of a home, adding it if necessary.
func (f *follower) threadNumber(ctx context.Context, h structure.Home) (n int64, err error) {
	found, err := f.get(ctx, `SELECT number FROM threads WHERE id = ? AND incarnation = ?`, []any{h.Thread[:], int64(h.Incarnation)}, &n)
	if found || err != nil {
		return n, err
	}
	f.thread++
	return f.thread, f.exec(ctx, `INSERT INTO threads VALUES (?, ?, ?, '', 0)`, f.thread, h.Thread[:], int64(h.Incarnation))
}
