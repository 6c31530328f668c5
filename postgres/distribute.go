package postgres

import (
	"context"
	"errors"
	"fmt"
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
	err = l.readOne(ctx, `SELECT coalesce(array_agg(t.name ORDER BY t.at), '{}') FROM unnest($1::text[]) WITH ORDINALITY AS t (name, at)
  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = to_regclass(t.name))`, []any{tables}, &names)
	return names, err
}

// distribute lets the extension distribute tables by store, with the rows that they have, without a time limit. It returns nil
// also if another process prevented it: the caller looks whether they are distributed.
func (l *log) distribute(ctx context.Context, names []string) error {
	err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
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
	switch sqlState(err) {
	case "":
		return err
	case invalidTable, serializationFail, deadlock, lockTimeout: // another process did it, or uses the tables
		return nil
	}
	return fmt.Errorf("distribute tables: %w", err)
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

// requireSafeServers refuses servers of distributed tables that can lose acknowledged commits. A client sets the durability
// of the server that it is connected to; the others commit as they are configured.
func (l *log) requireSafeServers(ctx context.Context) error {
	var server, answer string
	err := l.readOne(ctx, `SELECT coalesce(min(n.nodename || ':' || n.nodeport), 'the coordinator'), coalesce(min(coalesce(nullif(r.result, ''), 'unknown')), '')
  FROM run_command_on_all_nodes('SELECT current_setting(''fsync'') || '' '' || current_setting(''synchronous_commit'')') AS r
  LEFT JOIN pg_catalog.pg_dist_node AS n USING (nodeid) WHERE NOT (r.success AND r.result ~ '^on (on|local|remote_write|remote_apply)$')`, nil, &server, &answer)
	switch {
	case sqlState(err) == undefinedFunction:
		return errDistributed
	case err != nil:
		return err
	case answer != "":
		return fmt.Errorf("%w: %s, where they are: %s", errUnsafeServer, server, answer)
	}
	return nil
}

var (
	errNoExtension  = errors.New("the database has no extension that distributes tables: CREATE EXTENSION citus makes one")
	errDistributed  = errors.New("the tables are distributed over servers, whose fsync and synchronous_commit cannot be asked: commits may not be durable there")
	errUnsafeServer = errors.New("fsync and synchronous_commit have to be on, on every server of the tables, or commits are lost when its machine stops")
)
