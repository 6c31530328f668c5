// Package titles keeps the titles under which threads without a title of their own are listed: the start of their first prompt.
//
// They are in a SQLite file next to the journal, for lists of many threads: reading the first messages of each is slow where they are packed.
// The file can be deleted at any time.
package titles

import (
	"context"
	"database/sql"
	"iter"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// FileName is the name of the file in a store's directory.
const FileName = "titles.db"

// format is the version of the table and of what is taken as a title.
const format = 1

// schema creates the table. The title is that of a history that ends at step seq of the run. It is also that of histories that end at later
// steps if it is settled: it does not depend on more messages.
const schema = `
CREATE TABLE titles (run BLOB PRIMARY KEY, seq INTEGER NOT NULL, settled INTEGER NOT NULL, title TEXT NOT NULL) WITHOUT ROWID;
`

// Index is the file of a store. It is safe for concurrent use.
type Index struct {
	file   *derivedfile.File
	store  *lineage.Store
	adding func() // for tests: called before titles are added
}

// Open opens the file in a directory. Close it before the store.
func Open(ctx context.Context, store *lineage.Store, dir string) (*Index, error) {
	file, err := derivedfile.Open(ctx, store, dir, derivedfile.Config{Name: FileName, Label: "titles", Format: format, Schema: schema})
	return &Index{file: file, store: store}, err
}

// Close closes the file.
func (x *Index) Close() error { return x.file.Close() }

// Thread is a thread with the tip of its active context.
type Thread struct {
	lineage.ThreadInfo
	Tip lineage.SpanRef
}

// needsHistory reports whether the title is that of the history of the tip.
func (t *Thread) needsHistory() bool { return strings.TrimSpace(t.Title) == "" && !t.Tip.IsZero() }

// title is a row of the table.
type title struct {
	seq     uint64
	settled bool
	text    string
}

// covers reports whether the title is that of the history that ends at a step of the run.
func (t *title) covers(seq uint64) bool { return t.seq == seq || t.settled && t.seq < seq }

// mostBehind is the number of commits up to which the file is brought up to date by reading them. Beyond that it is emptied.
var mostBehind uint64 = 10_000

// Shown returns the titles under which threads are shown, as lineage.Store.ShownTitle does. It reads the messages of threads that the file
// does not have, and adds their titles.
func (x *Index) Shown(ctx context.Context, threads []Thread) (shown []string, err error) {
	if err := x.update(ctx); err != nil {
		return nil, err
	}
	known := make(map[structure.RunID]title)
	var at mark
	err = x.file.Repaired(ctx, func() (err error) {
		at, err = x.read(ctx, threads, known)
		return err
	})
	if err != nil {
		return nil, err
	}
	added := make(map[structure.RunID]title)
	for i := range threads {
		t := &threads[i]
		text := ""
		if !t.needsHistory() {
			text, err = x.store.ShownTitle(ctx, t.ThreadInfo)
		} else if row, ok := known[t.Tip.Run]; ok && row.covers(t.Tip.Seq) {
			text, err = transcript.Title(row.text, t.SourceID, nothing)
		} else {
			var row title
			var stored bool
			if row, stored, err = x.of(ctx, t.Tip); stored {
				known[t.Tip.Run], added[t.Tip.Run] = row, row
			}
			if err == nil {
				text, err = transcript.Title(row.text, t.SourceID, nothing)
			}
		}
		if err != nil {
			return nil, err
		}
		shown = append(shown, text)
	}
	if len(added) == 0 {
		return shown, nil
	}
	if x.adding != nil {
		x.adding()
	}
	return shown, x.file.Repaired(ctx, func() error { return x.add(ctx, added, at) })
}

func nothing(func(*transcript.Message, error) bool) {}

// update takes away titles that may contain what was erased or deleted.
func (x *Index) update(ctx context.Context) error {
	empty := func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM titles`)
		return err
	}
	return x.file.Update(ctx, derivedfile.Updating{
		Apply: func(ctx context.Context, w *derived.Window[*sql.Tx]) error {
			return w.Finish(ctx, func(tx *sql.Tx) error {
				if !takesAway(w.Changes) {
					return nil
				}
				return empty(ctx, tx)
			})
		},
		MostBehind: mostBehind, Empty: empty,
	})
}

func takesAway(c *derived.Changes) bool {
	if len(c.Erased) > 0 {
		return true
	}
	for _, t := range c.Threads {
		if t.Deleted {
			return true
		}
	}
	for _, c := range c.Contexts {
		if c.Deleted {
			return true
		}
	}
	return false
}

// atOnce is the number of rows that a statement reads.
const atOnce = 500

// mark says which updates a file has had.
type mark struct{ version, number, id int64 }

func markOf(ctx context.Context, q derivedfile.Querier) (m mark, err error) {
	err = q.QueryRowContext(ctx, `SELECT version, number, id FROM meta`).Scan(&m.version, &m.number, &m.id)
	return m, err
}

// read adds the rows of the runs of threads.
func (x *Index) read(ctx context.Context, threads []Thread, to map[structure.RunID]title) (at mark, err error) {
	var runs []any
	for i := range threads {
		if threads[i].needsHistory() {
			runs = append(runs, threads[i].Tip.Run[:])
		}
	}
	err = x.file.With(func(db *sql.DB) (err error) {
		if at, err = markOf(ctx, db); err != nil {
			return err
		}
		for some := range slices.Chunk(runs, atOnce) {
			err := derivedfile.Each(ctx, db, func(scan func(...any) error) error {
				var run []byte
				var t title
				if err := scan(&run, &t.seq, &t.settled, &t.text); err != nil {
					return err
				}
				if len(run) != len(structure.RunID{}) {
					return derivedfile.ErrUseless
				}
				to[structure.RunID(run)] = t
				return nil
			}, `SELECT run, seq, settled, title FROM titles WHERE run IN (?`+strings.Repeat(`, ?`, len(some)-1)+`)`, some...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return at, err
}

// add stores rows that were made of what the store has after a mark. If another process has updated the file since, it stores none: the
// process may have taken away what was erased after the messages of these rows were read.
func (x *Index) add(ctx context.Context, rows map[structure.RunID]title, at mark) error {
	return x.file.With(func(db *sql.DB) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if now, err := markOf(ctx, tx); err != nil || now != at {
			return err
		}
		insert, err := tx.PrepareContext(ctx, `INSERT OR REPLACE INTO titles VALUES (?, ?, ?, ?)`)
		if err != nil {
			return err
		}
		for run, t := range rows {
			if _, err := insert.ExecContext(ctx, run[:], int64(t.seq), t.settled, t.text); err != nil {
				return err
			}
		}
		return tx.Commit()
	})
}

// of returns the title of the history that ends at tip, without that of its thread. It is not to be stored if content of the messages is
// erased: it can be stored again.
func (x *Index) of(ctx context.Context, tip lineage.SpanRef) (t title, stored bool, err error) {
	t = title{seq: tip.Seq, settled: true}
	erased := false
	history := iter.Seq2[*transcript.Message, error](func(yield func(*transcript.Message, error) bool) {
		for e, err := range x.store.History(ctx, tip, lineage.Window{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			erased = erased || e.Erased
			if m, err := x.store.Transcribe(ctx, e, content.InlineLimit); !yield(m, err) || err != nil {
				return
			}
		}
		t.settled = false // more messages may have the prompt
	})
	t.text, err = transcript.Title("", "", history)
	return t, err == nil && !erased, err
}
