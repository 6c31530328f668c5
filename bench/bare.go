package bench

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/lineage-store/lineage/internal/sqlitefile"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// statement is a statement that a store ran, or the beginning or end of a transaction.
type statement struct {
	text  string
	args  []any
	query bool
}

// recorder opens connections of SQLite's driver and records what runs on them.
type recorder struct {
	driver driver.Driver
	dsn    string

	mu  sync.Mutex
	ran []statement
}

// take returns what was recorded since the last call.
func (r *recorder) take() []statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	ran := r.ran
	r.ran = nil
	return ran
}

func (r *recorder) add(text string, args []driver.NamedValue, query bool) {
	s := statement{text: text, query: query}
	for _, a := range args {
		s.args = append(s.args, a.Value)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran = append(r.ran, s)
}

// Driver implements driver.Connector.
func (r *recorder) Driver() driver.Driver { return r.driver }

// Connect implements driver.Connector.
func (r *recorder) Connect(context.Context) (driver.Conn, error) {
	c, err := r.driver.Open(r.dsn)
	if err != nil {
		return nil, err
	}
	return &recorded{c.(sqliteConn), r}, nil
}

// sqliteConn is the interfaces that a connection of the driver implements.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type recorded struct {
	sqliteConn
	r *recorder
}

func (c *recorded) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.r.add(text, args, false)
	return c.sqliteConn.ExecContext(ctx, text, args)
}

func (c *recorded) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.r.add(text, args, true)
	return c.sqliteConn.QueryContext(ctx, text, args)
}

func (c *recorded) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.ReadOnly {
		c.r.add("BEGIN", nil, false)
	} else {
		c.r.add("BEGIN IMMEDIATE", nil, false)
	}
	return &recordedTx{tx, c.r}, nil
}

func (c *recorded) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.sqliteConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	return &recordedStmt{s.(sqliteStmt), text, c.r}, nil
}

type recordedTx struct {
	driver.Tx
	r *recorder
}

func (t *recordedTx) Commit() error {
	t.r.add("COMMIT", nil, false)
	return t.Tx.Commit()
}

func (t *recordedTx) Rollback() error {
	t.r.add("ROLLBACK", nil, false)
	return t.Tx.Rollback()
}

type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type recordedStmt struct {
	sqliteStmt
	text string
	r    *recorder
}

func (s *recordedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.r.add(s.text, args, false)
	return s.sqliteStmt.ExecContext(ctx, args)
}

func (s *recordedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.r.add(s.text, args, true)
	return s.sqliteStmt.QueryContext(ctx, args)
}

// bareEngine repeats the statements of the last measurement of a store on SQLite through the bare driver, on a copy of
// the database. Each statement is prepared once, and its rows are read.
type bareEngine struct {
	of   *engines
	r    *recorder
	pool *sql.DB // of the store
	dir  string

	copies   int
	copied   *sql.DB
	conn     *sql.Conn
	prepared map[string]*sql.Stmt
}

// newSQLiteEngines returns this project's engines on a SQLite database, and what repeats their statements.
func newSQLiteEngines(ctx context.Context, dir string) (*engines, *bareEngine, error) {
	plain, err := sql.Open("sqlite", "")
	if err != nil {
		return nil, nil, err
	}
	d := plain.Driver()
	dsn := sqlitefile.DSN(filepath.Join(dir, "ours.db"), "immediate", append([]string{"busy_timeout(10000)"}, sqlitefile.Settings[:]...)...)
	r := &recorder{driver: d, dsn: dsn}
	pool := sql.OpenDB(r)
	db, err := sqlite.New(ctx, pool, sqladapter.Options{})
	if err = errors.Join(err, plain.Close()); err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	ours := &engines{chats: sqlchat.On(db), close: func() error { return errors.Join(db.Close(), pool.Close()) }}
	return ours, &bareEngine{of: ours, r: r, pool: pool, dir: dir}, nil
}

// load implements operator: it copies the database, into which the store has loaded the chat.
func (b *bareEngine) load(ctx context.Context, _ string, _ []string) (err error) {
	if err := b.close(); err != nil {
		return err
	}
	b.copies++
	path := filepath.Join(b.dir, fmt.Sprintf("copy-%d.db", b.copies))
	if _, err := b.pool.ExecContext(ctx, "VACUUM INTO ?", path); err != nil {
		return err
	}
	if b.copied, err = sql.Open("sqlite", sqlitefile.DSN(path, "deferred", append([]string{"busy_timeout(10000)"}, sqlitefile.Settings[:]...)...)); err != nil {
		return err
	}
	b.prepared = make(map[string]*sql.Stmt)
	b.conn, err = b.copied.Conn(ctx)
	b.r.take()
	return err
}

// measure implements operator. It measures what the store ran since the last call, which did the operation as often.
func (b *bareEngine) measure(ctx context.Context, name string, _ int) (time.Duration, error) {
	ran := b.r.take()
	if len(ran) == 0 {
		return 0, fmt.Errorf("%s: no statements", name)
	}
	for _, s := range ran {
		if b.prepared[s.text] == nil {
			p, err := b.conn.PrepareContext(ctx, s.text)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", s.text, err)
			}
			b.prepared[s.text] = p
		}
	}
	runtime.GC() // garbage of other contenders
	began := processTime()
	for _, s := range ran {
		if err := b.repeat(ctx, &s); err != nil {
			return 0, fmt.Errorf("%s: %w", s.text, err)
		}
	}
	return processTime() - began, nil
}

func (b *bareEngine) repeat(ctx context.Context, s *statement) error {
	if !s.query {
		_, err := b.prepared[s.text].ExecContext(ctx, s.args...)
		return err
	}
	rows, err := b.prepared[s.text].QueryContext(ctx, s.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (b *bareEngine) close() error {
	if b.copied == nil {
		return nil
	}
	var errs []error
	for _, s := range b.prepared {
		errs = append(errs, s.Close())
	}
	errs = append(errs, b.conn.Close(), b.copied.Close())
	b.copied = nil
	return errors.Join(errs...)
}
