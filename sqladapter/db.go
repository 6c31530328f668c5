package sqladapter

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
	"unicode/utf8"
)

// Options configure the use of a database. The zero value of each field is its default.
type Options struct {
	// Patience is how long a write is retried while other transactions are in the way. Default 30
	// seconds.
	Patience time.Duration
	// Connections is the maximum number of open connections. Default 8; SQLite has one for writing
	// in addition, and by default 4 for reading. It does not apply to a pool of the caller.
	Connections int
	// Schema is what Open may do to the tables. Default CreateTables.
	Schema Schema
	// Trace, when not nil, is called with each statement before it runs, possibly from several
	// goroutines.
	Trace func(sql string)
}

// Schema is what Open may do to the tables of a database.
type Schema int

const (
	// CreateTables creates missing tables, and brings those of an older version up to date.
	CreateTables Schema = iota
	// AdoptTables is CreateTables for a database that has chats of this package or of another
	// program. For any other, the error is ErrNoTables.
	AdoptTables
	// KeepTables neither creates nor changes a table. If tables are missing or older, the error is
	// ErrNoTables.
	KeepTables
)

func (o Options) orDefault() Options {
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	return o
}

// LimitPool sets the maximum number of connections of a pool to that in the options, else to
// otherwise. It is for packages that open databases.
func (o Options) LimitPool(pool *sql.DB, otherwise int) {
	if o.Connections > 0 {
		otherwise = o.Connections
	}
	pool.SetMaxOpenConns(otherwise)
	pool.SetMaxIdleConns(otherwise)
}

// Pools are the connections to a database.
type Pools struct {
	// Write is for transactions that take write locks from their first statement on.
	Write *sql.DB
	// Read, when not nil, is for reading. It sees what Write has committed.
	Read *sql.DB
	// Shared is set if the connections belong to the caller, who closes them.
	Shared bool
}

// Close closes the connections unless they are shared.
func (p Pools) Close() error {
	if p.Shared {
		return nil
	}
	err := p.Write.Close()
	if p.Read != nil && p.Read != p.Write {
		err = errors.Join(err, p.Read.Close())
	}
	return err
}

// DB is an open database with the current schema. It is safe for concurrent use. It does nothing
// between calls: a program that does not wait for locks can write alternately.
type DB struct {
	dialect Dialect
	syntax  Syntax
	limits  Limits
	pools   Pools
	options Options
	escaped bool // texts are written as escapeText does

	texts            sync.Map // rendering → string
	reading, writing prepared
}

type rendering struct {
	statement Statement
	n         int
}

// Open brings the schema of a database up to date, unless Options.Schema forbids it, and completes
// deletions that were interrupted. If the database belongs to something else, the error is ErrForeign
// and nothing is changed. Unless the connections are shared, Close closes them, and so does Open if it
// fails.
func Open(ctx context.Context, pools Pools, dialect Dialect, o Options) (*DB, error) {
	db := newDB(pools, dialect, o)
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s database: %w", dialect.Name(), err), pools.Close())
	}
	if db.options.Schema != KeepTables {
		// Without rights, for example, the next program that opens the database continues.
		_, _ = db.finishDeletions(ctx)
	}
	return db, nil
}

func newDB(pools Pools, dialect Dialect, o Options) *DB {
	db := &DB{dialect: dialect, syntax: dialect.Syntax(), limits: dialect.Limits(), pools: pools, options: o.orDefault(), escaped: escapes(dialect)}
	if db.pools.Read == nil {
		db.pools.Read = pools.Write
	}
	db.reading.most, db.writing.most = db.limits.Prepared, db.limits.Prepared
	return db
}

// Close closes the connections, unless they are shared. It must not be called while operations are
// running.
func (db *DB) Close() error {
	return errors.Join(db.reading.close(), db.writing.close(), db.pools.Close())
}

// Dialect returns the dialect of the database.
func (db *DB) Dialect() Dialect { return db.dialect }

// text returns a rendered statement, cached.
func (db *DB) text(s Statement, n int) (string, error) {
	key := rendering{s, n}
	if text, ok := db.texts.Load(key); ok {
		return text.(string), nil
	}
	text, err := db.syntax.Render(s, n)
	if err != nil {
		return "", err
	}
	db.texts.Store(key, text)
	return text, nil
}

// Conn runs statements, inside or outside of a transaction.
type Conn struct {
	db *DB
	q  Querier
	tx *sql.Tx // nil outside of a transaction
	// missed are statements to prepare after the transaction.
	missed []string
}

// Exec runs a statement and returns the number of changed rows.
func (c *Conn) Exec(ctx context.Context, s Statement, args ...any) (int64, error) {
	return c.ExecN(ctx, s, 1, args...)
}

// ExecN is Exec for statements with marks that repeat n times.
func (c *Conn) ExecN(ctx context.Context, s Statement, n int, args ...any) (int64, error) {
	text, err := c.text(s, n)
	if err != nil {
		return 0, err
	}
	args = c.db.arguments(args)
	var result sql.Result
	if prepared := c.prepared(ctx, text); prepared != nil {
		result, err = prepared.ExecContext(ctx, args...)
	} else {
		result, err = c.q.ExecContext(ctx, text, args...)
	}
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// arguments converts arguments for the driver: JSON, given as json.RawMessage, is passed as text.
func (db *DB) arguments(args []any) []any {
	changed := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			if db.escaped {
				arg = escapeText(v)
			}
		case json.RawMessage:
			arg = string(v)
			if db.escaped {
				arg = escapeJSON(string(v))
			}
		}
		if db.syntax.Argument != nil {
			arg = db.syntax.Argument(arg)
		}
		changed[i] = arg
	}
	return changed
}

// errNoMatch is the error of a query for a text that is not UTF-8: no row matches. A driver would return an
// error or search for another text.
var errNoMatch = errors.New("no row matches")

// Query runs a query.
func (c *Conn) Query(ctx context.Context, s Statement, args ...any) (*Rows, error) {
	return c.QueryN(ctx, s, 1, args...)
}

// QueryN is Query for statements with marks that repeat n times.
func (c *Conn) QueryN(ctx context.Context, s Statement, n int, args ...any) (*Rows, error) {
	text, err := c.text(s, n)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		if s, ok := arg.(string); ok && !utf8.ValidString(s) {
			return nil, errNoMatch
		}
	}
	args = c.db.arguments(args)
	var rows *sql.Rows
	if prepared := c.prepared(ctx, text); prepared != nil {
		rows, err = prepared.QueryContext(ctx, args...)
	} else {
		rows, err = c.q.QueryContext(ctx, text, args...)
	}
	return &Rows{rows, c.db.escaped}, err
}

// Get scans the first row of a query and reports whether there is one.
func (c *Conn) Get(ctx context.Context, s Statement, args []any, into ...any) (bool, error) {
	rows, err := c.Query(ctx, s, args...)
	if err != nil {
		return false, matched(err)
	}
	defer rows.Close()
	if !rows.Next() {
		return false, rows.Err()
	}
	if err := rows.Scan(into...); err != nil {
		return false, err
	}
	return true, rows.Close()
}

// matched returns the error of a query, or nil if no row matches.
func matched(err error) error {
	if errors.Is(err, errNoMatch) {
		return nil
	}
	return err
}

func (c *Conn) text(s Statement, n int) (string, error) {
	text, err := c.db.text(s, n)
	if err == nil && c.db.options.Trace != nil {
		c.db.options.Trace(text)
	}
	return text, err
}

// Reader returns a connection for single statements that only read.
func (db *DB) Reader() *Conn { return &Conn{db: db, q: db.pools.Read} }

// Write runs a function in a transaction, which is committed completely or not at all. If another
// transaction is in the way, or the connection is lost before the commit, it runs the function
// again, so the function must be repeatable. A connection lost during the commit is ErrUncertain.
// The function must use only its connection, and only until it returns.
func (db *DB) Write(ctx context.Context, fn func(c *Conn) error) error {
	write := func() error { return db.patiently(ctx, func() error { return db.writeOnce(ctx, fn) }) }
	err := write()
	if err != nil && db.dialect.Classify(err) == Duplicate { // perhaps the id of a chat that is being deleted
		if n, finished := db.finishDeletions(ctx); n > 0 && finished == nil {
			return write()
		}
	}
	return err
}

// Read runs a function that only reads, each statement separately. It runs the function again if
// another transaction is in the way or the connection is lost.
func (db *DB) Read(ctx context.Context, fn func(c *Conn) error) error {
	return db.patiently(ctx, func() error { return fn(db.Reader()) })
}

// compact removes remains of changed rows from the database's files.
func (db *DB) compact(ctx context.Context) error {
	for _, s := range db.dialect.Search().Compact {
		err := db.patiently(ctx, func() error {
			_, err := db.pools.Write.ExecContext(ctx, string(s))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// patiently runs a function, and repeats it up to Options.Patience while other transactions are in
// the way or the connection is lost.
func (db *DB) patiently(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(db.options.Patience)
	duplicates := 0
	for wait := time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		err := fn()
		if errors.Is(err, errUnchanged) {
			return nil
		}
		if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // the driver may only report a lost connection
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrUncertain) {
			return err
		}
		switch db.dialect.Classify(err) {
		case Duplicate, Dangling:
			// Another transaction has just created or deleted a row that this one looked for. The
			// next attempt sees that.
			if duplicates++; duplicates > 3 {
				return err
			}
			continue
		case Busy, Lost:
		default:
			return Explain(db.dialect, err)
		}
		if time.Now().After(deadline) {
			return Explain(db.dialect, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait/2 + rand.N(wait)):
		}
	}
}

// isolation is for transactions that write, independent of the server's default: after waiting for
// a lock, a transaction must see what the previous holder committed.
var isolation = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

func (db *DB) writeOnce(ctx context.Context, fn func(c *Conn) error) (err error) {
	tx, err := db.pools.Write.BeginTx(ctx, isolation)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			tx.Rollback() // the first error is reported
		}
	}()
	c := &Conn{db: db, q: tx, tx: tx}
	if err := fn(c); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	done = true
	if err := tx.Commit(); err != nil {
		return db.commitError(ctx, err)
	}
	db.writing.prepare(ctx, db.pools.Write, c.missed)
	return nil
}

// commitError returns whether the outcome of a failed commit is known.
func (db *DB) commitError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, sql.ErrTxDone): // rolled back when the context ended
		return cmp.Or(ctx.Err(), err)
	case ctx.Err() != nil || db.dialect.Classify(err) == Lost:
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}
