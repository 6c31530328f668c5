package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// tables are those of stores. Each has the store in its key. The others are colocated with the first.
var tables = []string{
	"lineage_store", "lineage_log", "lineage_durable", "lineage_collection", "lineage_entry", "lineage_head", "lineage_former",
	"lineage_search", "lineage_search_text", "lineage_search_term", "lineage_search_usage", "lineage_search_run", "lineage_search_tip", "lineage_search_thread",
}

// undistributed returns the tables that the extension has not distributed over servers.
func (l *log) undistributed(ctx context.Context) (names []string, err error) {
	err = withRetry(ctx, func(ctx context.Context) error {
		return l.readOne(ctx, `SELECT coalesce(array_agg(t.name ORDER BY t.at), '{}') FROM unnest($1::text[]) WITH ORDINALITY AS t (name, at)
  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = to_regclass(t.name))`, []any{tables}, &names)
	})
	return names, err
}

// distribute lets the extension distribute tables by store, with the rows that they have, however long that takes. Without an
// error, another process may have done it: the caller looks whether they are distributed.
func (l *log) distribute(ctx context.Context, names []string) error {
	err := retry(ctx, func(ctx context.Context) error { return l.distributeOnce(ctx, names) })
	switch sqlState(err) {
	case "":
		return err
	case invalidTable: // another process did it
		return nil
	}
	return fmt.Errorf("distribute tables: %w", err)
}

func (l *log) distributeOnce(ctx context.Context, names []string) error {
	return pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, limitsSQL, milliseconds(2*time.Second), "0", milliseconds(idleTime)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT FROM lineage_schema FOR UPDATE`); err != nil { // no tables are created meanwhile
			return err
		}
		for _, name := range names {
			colocated := tables[0]
			if name == colocated {
				colocated = "none"
			}
			if _, err := tx.Exec(ctx, `SELECT create_distributed_table($1::text::regclass, 'store', colocate_with => $2)`, name, colocated); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
}

// toDistribute returns the tables that are still to be distributed: those that are not yet, if all of them are to be, or some
// are, because a migration adds tables. It reports whether tables are distributed, or will be.
func (l *log) toDistribute(ctx context.Context, db databaseFacts, all bool) (names []string, distributed bool, err error) {
	if !db.distributes {
		return nil, false, nil
	}
	if names, err = l.undistributed(ctx); err != nil {
		return nil, false, err
	}
	if len(names) == len(tables) && !all {
		return nil, false, nil
	}
	return names, true, nil
}

// serverSQL asks the server that has the rows of a store: where tables are distributed, settings in a query of one shard are
// those of its server.
const serverSQL = `SELECT coalesce(host(inet_server_addr()), 'localhost') || ':' || current_setting('port'), current_setting('fsync'), current_setting('synchronous_commit')
  FROM lineage_store WHERE store = $1`

// requireSafe refuses a server of distributed tables that can lose acknowledged commits. A client sets the durability of the
// server that it is connected to; another one commits as it is configured.
func (s serverOfRows) requireSafe() error {
	if s.fsync == "on" && slices.Contains([]string{"on", "local", "remote_write", "remote_apply"}, s.synchronous) {
		return nil
	}
	return fmt.Errorf("%w: %s has the store, and there they are %s and %s", errUnsafeServer, s.address, s.fsync, s.synchronous)
}

var (
	errNoExtension  = errors.New("the database has no extension that distributes tables: CREATE EXTENSION citus makes one")
	errUnsafeServer = errors.New("fsync and synchronous_commit have to be on, on every server of the tables, or commits are lost when its machine stops")
)
