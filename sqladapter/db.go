package sqladapter

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Options choose how a database is used. The zero value is good for most.
type Options struct {
	// Patience is how long a write is tried again while others are in its way.
	// Default 30 seconds.
	Patience time.Duration
	// Connections is the most connections that are open at once. Default 8; SQLite has
	// one more, which writes, and by default 4 that read. It does not change a pool that
	// the caller made.
	Connections int
	// Trace, when not nil, is called with every statement before it runs. It may be called by
	// several goroutines at once.
	Trace func(sql string)
}

func (o Options) orDefault() Options {
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	return o
}

// LimitPool limits a pool to as many connections as the options say,
// or else to the number given. It is for packages that open databases.
func (o Options) LimitPool(pool *sql.DB, otherwise int) {
	if o.Connections > 0 {
		otherwise = o.Connections
	}
	pool.SetMaxOpenConns(otherwise)
	pool.SetMaxIdleConns(otherwise)
}

// Pools are the connections to one database.
type Pools struct {
	// Write begins transactions that may write from their first statement on.
	Write *sql.DB
	// Read, when not nil, is for reading. It sees what Write has committed.
	Read *sql.DB
	// Shared says that the connections belong to the caller, who closes them.
	Shared bool
}

// Close closes the connections, unless they are shared.
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

// DB is an open database with the schema in place. All methods are safe for
// concurrent use.
type DB struct {
	dialect Dialect
	syntax  Syntax
	limits  Limits
	pools   Pools
	options Options

	texts            sync.Map // rendering → string
	reading, writing prepared
	background       *background
}

type rendering struct {
	statement Statement
	n         int
}

// Open brings the schema of a database up to date. It fails with ErrForeign if the
// database belongs to something else; nothing is changed then. Unless the connections
// are shared, Close closes them, and so does Open if it fails.
func Open(ctx context.Context, pools Pools, dialect Dialect, o Options) (*DB, error) {
	db := &DB{background: newBackground(), dialect: dialect, syntax: dialect.Syntax(), limits: dialect.Limits(), pools: pools, options: o.orDefault()}
	if db.pools.Read == nil {
		db.pools.Read = pools.Write
	}
	db.reading.most, db.writing.most = db.limits.Prepared, db.limits.Prepared
	if err := db.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s database: %w", dialect.Name(), err), pools.Close())
	}
	db.resumeDeletions(ctx)
	return db, nil
}

// Close ends background work and closes the connections, unless they are shared. It must not
// be called while operations are running.
func (db *DB) Close() error {
	db.background.close()
	return errors.Join(db.reading.close(), db.writing.close(), db.pools.Close())
}

// Dialect returns the dialect of the database.
func (db *DB) Dialect() Dialect { return db.dialect }

// text renders a statement, once.
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

// Conn runs statements, in a transaction or on their own.
type Conn struct {
	db *DB
	q  Querier
	tx *sql.Tx // when in one
	// missed are statements that would have been prepared if they had been known.
	missed []string
	// behind are chats to be learned after the transaction.
	behind []string
}

// Exec runs a statement and returns how many rows it changed.
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

// arguments returns arguments as the driver is given them.
func (db *DB) arguments(args []any) []any {
	if db.syntax.Argument == nil {
		return args
	}
	changed := make([]any, len(args))
	for i, arg := range args {
		changed[i] = db.syntax.Argument(arg)
	}
	return changed
}

// errNoMatch is the error of a query for a text that the database cannot hold: no row
// matches. A driver would fail, or look for something else.
var errNoMatch = errors.New("no row matches")

// canHold reports whether the database can hold a text.
func (db *DB) canHold(s string) bool { return db.clean(s) == s }

// Query runs a query.
func (c *Conn) Query(ctx context.Context, s Statement, args ...any) (*sql.Rows, error) {
	return c.QueryN(ctx, s, 1, args...)
}

// QueryN is Query for statements with marks that repeat n times.
func (c *Conn) QueryN(ctx context.Context, s Statement, n int, args ...any) (*sql.Rows, error) {
	text, err := c.text(s, n)
	if err != nil {
		return nil, err
	}
	for _, arg := range args {
		if s, ok := arg.(string); ok && !c.db.canHold(s) {
			return nil, errNoMatch
		}
	}
	args = c.db.arguments(args)
	if prepared := c.prepared(ctx, text); prepared != nil {
		return prepared.QueryContext(ctx, args...)
	}
	return c.q.QueryContext(ctx, text, args...)
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

// matched returns the error of a query, nil if no row matches.
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

// Reader returns a connection for statements on their own that only read.
func (db *DB) Reader() *Conn { return &Conn{db: db, q: db.pools.Read} }

// Write runs a function in a transaction, which is committed whole or not at all. When another
// transaction is in the way, or the connection is lost before the commit, it runs again: the
// function must do the same each time. A connection that is lost during the commit is
// ErrUncertain. The function's connection must not be used after it returned, and the function
// must not use the database in another way.
func (db *DB) Write(ctx context.Context, fn func(c *Conn) error) error {
	write := func() error { return db.patiently(ctx, func() error { return db.writeOnce(ctx, fn) }) }
	err := write()
	if err != nil && db.dialect.Classify(err) == Duplicate { // of a chat, perhaps, that is still being deleted
		if n, finished := db.finishDeletions(ctx); n > 0 && finished == nil {
			return write()
		}
	}
	return err
}

// Read runs a function that only reads, each statement on its own. When another
// transaction is in the way, or the connection is lost, it runs again.
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

// patiently runs a function until no transaction is in its way and the connection
// lasts, but not for ever.
func (db *DB) patiently(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(db.options.Patience)
	duplicates := 0
	for wait := time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		err := fn()
		if errors.Is(err, errUnchanged) {
			return nil
		}
		if ended := ctx.Err(); err != nil && ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err) // the driver may say only that its connection is gone
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, ErrUncertain) {
			return err
		}
		switch db.dialect.Classify(err) {
		case Duplicate, Dangling:
			// Another transaction has just made or taken away what this one looked
			// for: now it can see that.
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

// isolation is that of transactions that write, whatever a server's default is: after
// a transaction waited for a lock, it must see what the holder of the lock committed.
var isolation = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

func (db *DB) writeOnce(ctx context.Context, fn func(c *Conn) error) (err error) {
	tx, err := db.pools.Write.BeginTx(ctx, isolation)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			tx.Rollback() // what went wrong is known already
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
	for _, id := range c.behind {
		db.background.start("learn "+id, func(ctx context.Context) { _ = db.learnInParts(ctx, id) }) // where it fails, a search tries again
	}
	return nil
}

// commitError says of an error of a commit whether its outcome is known.
func (db *DB) commitError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, sql.ErrTxDone): // it was rolled back when the context ended
		return cmp.Or(ctx.Err(), err)
	case ctx.Err() != nil || db.dialect.Classify(err) == Lost:
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}
