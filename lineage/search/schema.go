package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lineage-store/lineage/internal/sqlitefile"
)

// format is the version of the tables and their content. An index with another version is rebuilt.
const format = 4

// forever is a sequence number after the last step of any run.
const forever = math.MaxInt64

// schema creates the tables.
//
// A text is in "terms" under its number. Its id is a textID: the content id and the reading.
// "usages" are the steps that use a text; a step is run and seq, and head is the first usage of the
// message in its step. "tips" are the steps that contexts, checkpoints and summaries see, with
// everything before them. Runs of threads that keep their messages are seen as a whole. "reached"
// is the last step of a run that anything sees. Contexts with records beside messages see nothing. A summary is a run with one step. "vectors" are
// embeddings of texts by the model in "meta", and "pending" are texts that it has not embedded.
const schema = `
CREATE TABLE meta (
	one INTEGER PRIMARY KEY, store BLOB NOT NULL, number INTEGER NOT NULL, id INTEGER NOT NULL, seen_number INTEGER NOT NULL, seen_id INTEGER NOT NULL,
	turn INTEGER NOT NULL, spans INTEGER NOT NULL, texts INTEGER NOT NULL, model TEXT NOT NULL
);
INSERT INTO meta VALUES (1, zeroblob(16), 0, 0, 0, 0, 0, 0, 0, '');
CREATE TABLE texts (id BLOB PRIMARY KEY, number INTEGER NOT NULL, words INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE erased (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE terms USING fts5(words, content='', contentless_delete=1, tokenize='ascii');
CREATE VIRTUAL TABLE places USING fts5vocab(terms, instance);
CREATE TABLE roles (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE usages (
	text INTEGER NOT NULL, run INTEGER NOT NULL, seq INTEGER NOT NULL, head INTEGER NOT NULL, role INTEGER NOT NULL, words INTEGER NOT NULL,
	PRIMARY KEY (text, run, seq, head)
) WITHOUT ROWID;
CREATE TABLE threads (
	number INTEGER PRIMARY KEY, id BLOB NOT NULL, incarnation INTEGER NOT NULL, user TEXT NOT NULL, keeps INTEGER NOT NULL,
	UNIQUE (id, incarnation)
);
CREATE INDEX threads_of ON threads (user);
CREATE TABLE runs (
	number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, parent INTEGER NOT NULL, after INTEGER NOT NULL, thread INTEGER NOT NULL,
	last INTEGER NOT NULL, reached INTEGER NOT NULL
);
CREATE INDEX runs_behind ON runs (parent, after) WHERE parent > 0;
CREATE INDEX runs_of ON runs (thread) WHERE thread > 0;
CREATE TABLE tips (id BLOB NOT NULL UNIQUE, thread INTEGER NOT NULL, run INTEGER NOT NULL, seq INTEGER NOT NULL, of BLOB);
CREATE INDEX tips_of ON tips (of) WHERE of IS NOT NULL;
CREATE INDEX tips_in ON tips (run);
CREATE INDEX tips_thread ON tips (thread);
CREATE TABLE vectors (text INTEGER PRIMARY KEY, id BLOB NOT NULL, vector BLOB NOT NULL);
CREATE TABLE pending (text INTEGER PRIMARY KEY, id BLOB NOT NULL);
`

// connect opens an existing file, and creates the tables if it is empty.
func connect(ctx context.Context, path string) (_ *sql.DB, err error) {
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, "immediate", slices.Concat([]string{fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())}, sqlitefile.Settings[:])...))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	db.SetMaxOpenConns(4)
	is := func(q querier) (version int, err error) {
		err = q.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
		return version, err
	}
	if version, err := is(db); err != nil || version == format {
		return db, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	switch version, err := is(tx); {
	case err != nil || version == format:
		return db, err
	case version != 0:
		return nil, fmt.Errorf("format %d: %w", version, errUseless)
	}
	others := 0
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_master`).Scan(&others); err != nil {
		return nil, err
	}
	if others > 0 {
		return nil, fmt.Errorf("%d unknown tables: %w", others, errUseless)
	}
	if _, err := tx.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d;", format)); err != nil {
		return nil, err
	}
	return db, tx.Commit()
}

// querier is a database, a connection or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls do for each row of a query. scan reads the columns.
func each(ctx context.Context, q querier, do func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := do(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
