// Package postgres keeps chats in a Postgres database.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/lineage-store/lineage/sqladapter"
)

// Open opens the database that a DSN names, which is a URL ("postgres://…") or
// keywords with values ("host=… dbname=…"), and makes the tables that are not there
// in the schema that the connection's search path begins with. Their names are in lower
// case, as Postgres folds those of the documented script. One made by others with the
// documented tables is taken as it is, also where their names were quoted.
func Open(ctx context.Context, dsn string, o sqladapter.Options) (*sqladapter.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open postgres database: %w", err)
	}
	pool := stdlib.OpenDB(*config)
	o.LimitPool(pool, connections)
	return open(ctx, sqladapter.Pools{Write: pool}, o)
}

// New is Open for a pool that the caller has, which stays the caller's to close. Its
// driver is pgx, as stdlib.OpenDB and, for a *pgxpool.Pool, stdlib.OpenDBFromPool
// return it.
func New(ctx context.Context, pool *sql.DB, o sqladapter.Options) (*sqladapter.DB, error) {
	return open(ctx, sqladapter.Pools{Write: pool, Shared: true}, o)
}

// connections is how many connections are used at once unless options say otherwise.
const connections = 8

func open(ctx context.Context, pools sqladapter.Pools, o sqladapter.Options) (*sqladapter.DB, error) {
	dialect, err := detect(ctx, pools.Write)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open postgres database: %w", sqladapter.Explain(dialect, err)), pools.Close())
	}
	return sqladapter.Open(ctx, pools, dialect, o)
}

// detect finds out whether a database has documented tables with names that were
// quoted when they were made.
func detect(ctx context.Context, pool *sql.DB) (Dialect, error) {
	for table, column := range map[string]string{"chats": "userId", "messages": "chatId", "branches": "chatId", "checkpoints": "chatId"} {
		columns, err := Dialect{}.Columns(ctx, pool, table)
		if err != nil || slices.Contains(columns, column) {
			return Dialect{quoted: err == nil}, err
		}
	}
	return Dialect{}, nil
}
