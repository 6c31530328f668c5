package sqladapter

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// DB is an open database. It is safe for concurrent use. It does nothing in the background, so another program that
// does not wait for locks can write between calls.
type DB struct {
	*renderer
	pools            Pools
	options          Options
	reading, writing *prepared
}

// New returns a database that uses the connections in pools. Migrate must be called before anything else. Programs
// open databases with the packages of dialects.
func New(pools Pools, dialect Dialect, o Options) *DB {
	if pools.Read == nil {
		pools.Read = pools.Write
	}
	limited, _ := dialect.(TextLimited)
	most := dialect.Limits().Prepared
	return &DB{
		renderer: &renderer{dialect: dialect, syntax: dialect.Syntax(), escaped: limited != nil && limited.NoNUL(), trace: o.Trace},
		pools:    pools, options: o.orDefault(), reading: &prepared{pool: pools.Read, most: most}, writing: &prepared{pool: pools.Write, most: most},
	}
}

// Close closes the connections, unless they are shared. It must not be called while operations are
// running.
func (db *DB) Close() error {
	return errors.Join(db.reading.close(), db.writing.close(), db.pools.Close())
}

// Dialect returns the dialect of the database.
func (db *DB) Dialect() Dialect { return db.dialect }

// Written returns a text in the form in which the database stores it: see TextLimited.
func (db *DB) Written(text string) string {
	if db.escaped {
		return escapeText(text)
	}
	return text
}

// Reader returns a connection for single statements that only read.
func (db *DB) Reader() *Conn {
	return &Conn{renderer: db.renderer, querier: db.pools.Read, prepared: db.reading}
}

// Write runs a function in a transaction. If another transaction is in the way, or the connection is lost before the
// commit, it runs the function again, so the function must be repeatable. The error is ErrUncertain if the connection
// is lost during the commit. If the function returns ErrUnchanged, nothing is committed, and Write returns nil.
//
// The function must use only its connection, and only until it returns.
func (db *DB) Write(ctx context.Context, fn func(c *Conn) error) error {
	return db.patiently(ctx, func() error { return db.writeOnce(ctx, fn) })
}

// Read runs a function that only reads. Its statements do not share a transaction. If another transaction is in the
// way or the connection is lost, it runs the function again.
func (db *DB) Read(ctx context.Context, fn func(c *Conn) error) error {
	return db.patiently(ctx, func() error { return fn(db.Reader()) })
}

// Compact removes remains of changed rows from the files of the database.
func (db *DB) Compact(ctx context.Context) error {
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

// patiently runs a function. While other transactions are in the way or the connection is lost, it runs it again, for
// at most Options.Patience.
func (db *DB) patiently(ctx context.Context, fn func() error) error {
	deadline := time.Now().Add(db.options.Patience)
	duplicates := 0
	for wait := time.Millisecond; ; wait = min(2*wait, 250*time.Millisecond) {
		err := fn()
		if errors.Is(err, ErrUnchanged) {
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
			// Another transaction has just created or deleted a row that this one looked for. The next attempt sees
			// the result.
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

// isolation is the isolation level of transactions that write, whatever the server's default. After waiting for a
// lock, a transaction must see what the previous holder committed.
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
	c := &Conn{renderer: db.renderer, querier: tx, prepared: db.writing, tx: tx}
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
	db.writing.prepare(ctx, c.missed)
	return nil
}

// commitError returns the error of a failed commit: ErrUncertain unless it is known that nothing was committed.
func (db *DB) commitError(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, sql.ErrTxDone): // rolled back when the context ended
		return cmp.Or(ctx.Err(), err)
	case ctx.Err() != nil || db.dialect.Classify(err) == Lost:
		return fmt.Errorf("%w: %w", ErrUncertain, err)
	}
	return err
}
