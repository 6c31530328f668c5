package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/lineage/backend"
)

// look reads what opening a store needs, in one round trip.
func (l *log) look(ctx context.Context) (db databaseFacts, err error) {
	err = l.readRetried(ctx, func(b *pgx.Batch) {
		db = databaseFacts{}
		// First, because the next one fails where there are no tables yet.
		b.Queue(`SELECT current_setting('fsync'), to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL`).QueryRow(func(row pgx.Row) error {
			return row.Scan(&db.fsync, &db.distributes)
		})
		b.Queue(`SELECT version FROM lineage_schema`).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&db.version)
			if errors.Is(err, pgx.ErrNoRows) { // a restore has not filled it yet
				err = ErrRestoring
			}
			return err
		})
		b.Queue(`SELECT (SELECT count(*) FROM unnest($2::text[]) AS t (name)
  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = to_regclass(t.name) AND indisprimary AND indisvalid)),
  (SELECT identity FROM lineage_store WHERE store = $1)`, l.store, tables).QueryRow(func(row pgx.Row) error {
			return row.Scan(&db.missing, &db.identity)
		})
		b.Queue(serverSQL, l.store).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&db.server.address, &db.server.fsync, &db.server.synchronous)
			if errors.Is(err, pgx.ErrNoRows) { // there is no such store
				err = nil
			}
			return err
		})
	})
	if sqlState(err) == undefinedTable && db.version == 0 {
		err = nil
	}
	return db, err
}

// prepare creates the tables, or updates them to the version of this program, and finds or creates the store. Many
// processes may do so at once.
func (l *log) prepare(ctx context.Context, o Options) error {
	for range mostRetries {
		db, err := l.look(ctx)
		switch {
		case err != nil:
			return err
		case o.Distribute && db.version > 0 && !db.distributes:
			return errNoExtension
		case db.version > len(migrations):
			return newerTables(db.version)
		case db.version == len(migrations) && db.missing > 0: // a row could be written twice
			return ErrRestoring
		case db.version == len(migrations) && db.identity != nil:
			if adopted, err := l.adopt(ctx, db, o); adopted || err != nil {
				return err
			}
			continue
		case db.version == 0 && o.MustExist:
			return fmt.Errorf("the database has no tables of stores: %w", backend.ErrNotFound)
		case db.version == len(migrations) && o.MustExist:
			return backend.ErrNotFound
		case db.fsync != "on" && !o.Unsafe: // before it has a store
			return errUnsafe
		case db.version == len(migrations):
			if err = l.register(ctx, o.Store, o.ID); err != nil {
				return err
			}
			continue
		}
		if err := l.migrate(ctx); err != nil {
			return err
		}
	}
	return errors.New("create tables and store: other processes kept changing them")
}

// adopt takes the identity of a store that exists, if its server is safe. adopted is false if it distributed tables: whether
// they are distributed now has to be looked up.
func (l *log) adopt(ctx context.Context, db databaseFacts, o Options) (adopted bool, err error) {
	if copy(l.identity[:], db.identity) != len(l.identity) {
		return false, &backend.CorruptError{File: "lineage_store", What: "the identity of the store"}
	}
	names, distributed, err := l.toDistribute(ctx, db, o.Distribute)
	switch {
	case err != nil:
		return false, err
	case len(names) > 0:
		return false, l.distribute(ctx, names)
	case o.Unsafe:
		return true, nil
	case db.fsync != "on":
		return false, errUnsafe
	case distributed:
		return true, db.server.requireSafe()
	}
	return true, nil
}

// migrate creates or updates the tables. Without an error, another process may have done it.
func (l *log) migrate(ctx context.Context) error {
	err := withLongRetry(ctx, readTime, l.migrateOnce)
	switch sqlState(err) {
	case "":
		return err
	case duplicateTable, duplicateObject, uniqueViolation: // another process did it
		return nil
	case insufficient:
		return fmt.Errorf("create tables: %w; a role with this right has to open the store first", err)
	}
	return fmt.Errorf("create tables: %w", err)
}

func (l *log) migrateOnce(ctx context.Context) error {
	return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, limitsSQL, milliseconds(2*time.Second), milliseconds(writeTime), milliseconds(idleTime)); err != nil {
			return err
		}
		for _, s := range []string{
			`CREATE TABLE IF NOT EXISTS lineage_schema (one boolean PRIMARY KEY DEFAULT true CHECK (one), version integer NOT NULL)`,
			`INSERT INTO lineage_schema (version) VALUES (0) ON CONFLICT DO NOTHING`,
		} {
			if _, err := tx.Exec(ctx, s); err != nil {
				return err
			}
		}
		var version int
		if err := tx.QueryRow(ctx, `SELECT version FROM lineage_schema FOR UPDATE`).Scan(&version); err != nil {
			return err
		}
		for ; version < len(migrations); version++ {
			for _, s := range migrations[version] {
				if _, err := tx.Exec(ctx, s); err != nil {
					return err
				}
			}
		}
		_, err := tx.Exec(ctx, `UPDATE lineage_schema SET version = $1`, version)
		return err
	})
}

// register creates the store with an id, random if zero, unless another process has.
func (l *log) register(ctx context.Context, name string, id [16]byte) error {
	if id == [16]byte{} {
		_, _ = rand.Read(id[:]) // never fails
	}
	return withRetry(ctx, func(ctx context.Context) error {
		return l.transaction(ctx, backend.Full, func(b *pgx.Batch) {
			b.Queue(`INSERT INTO lineage_store (store, name, identity) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, l.store, name, id[:])
		})
	})
}

var errUnsafe = errors.New("the server runs with fsync=off: it loses commits, or all of the database, when its machine stops")
