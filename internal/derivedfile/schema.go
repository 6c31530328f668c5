package derivedfile

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/lineage-store/lineage/internal/sqlitefile"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Forever is a sequence number after the last step of any run.
const Forever = math.MaxInt64

// Config describes a file.
type Config struct {
	// Name is the file name. Label is its name in errors.
	Name, Label string
	// Format is the version of the tables and their content, from 1 on. A file of an older one is replaced by an empty one. One of a
	// newer program is left alone: the error matches backend.ErrNewerFormat.
	Format int
	// Schema creates the caller's tables. Meta declares the caller's columns in table meta, each preceded by a comma
	// and with a default.
	Schema, Meta string
}

// schema creates the tables of every file. "tips" are the steps at which contexts, checkpoints and summaries point;
// everything before them is visible too. Runs of threads that keep their messages are visible as a whole. "reached"
// is the last visible step of a run. A run that stands for a summary has one step.
const schema = `
CREATE TABLE meta (
	one INTEGER PRIMARY KEY, store BLOB NOT NULL, number INTEGER NOT NULL, id INTEGER NOT NULL, seen_number INTEGER NOT NULL, seen_id INTEGER NOT NULL,
	version INTEGER NOT NULL%s
);
INSERT INTO meta (one, store, number, id, seen_number, seen_id, version) VALUES (1, zeroblob(16), 0, 0, 0, 0, 0);
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
`

// incremental is the setting of SQLite by which a file can be made smaller in place.
const incremental = 2

// busySetting is a setting of connections, beside those of other files.
var busySetting = fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())

// initialize lets a new file be made smaller in place. This is no setting of connections, because each of them would then write to the
// file, and wait for other processes that do.
func initialize(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return err
	}
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, "immediate", slices.Concat([]string{busySetting, fmt.Sprintf("auto_vacuum(%d)", incremental)}, sqlitefile.Settings[:])...))
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), db.Close())
}

// connect opens an existing file, and creates the tables if it is empty.
func connect(ctx context.Context, path string, c *Config) (_ *sql.DB, err error) {
	if err := initialize(ctx, path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", sqlitefile.DSN(path, "immediate", slices.Concat([]string{busySetting}, sqlitefile.Settings[:])...))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.Close())
		}
	}()
	db.SetMaxOpenConns(4)
	versionOf := func(q Querier) (version int, err error) {
		err = q.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version)
		return version, err
	}
	if version, err := versionOf(db); err != nil || version == c.Format {
		return db, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	switch version, err := versionOf(tx); {
	case err != nil || version == c.Format:
		return db, err
	case version > c.Format:
		return nil, fmt.Errorf("%s has format %d, this program reads %d: %w", c.Name, version, c.Format, backend.ErrNewerFormat)
	case version != 0:
		return nil, fmt.Errorf("format %d: %w", version, ErrUseless)
	}
	others := 0
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_master`).Scan(&others); err != nil {
		return nil, err
	}
	if others > 0 {
		return nil, fmt.Errorf("%d unknown tables: %w", others, ErrUseless)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(schema, c.Meta)+c.Schema+fmt.Sprintf("PRAGMA user_version = %d;", c.Format)); err != nil {
		return nil, err
	}
	return db, tx.Commit()
}

// Querier is a database, a connection or a transaction.
type Querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Each calls do for each row of a query. scan reads the columns.
func Each(ctx context.Context, q Querier, do func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	return eachOf(rows, do)
}

func eachOf(rows *sql.Rows, do func(scan func(...any) error) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := do(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
