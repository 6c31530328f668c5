// Package postgres keeps chats in a Postgres database.
package postgres

import (
	"context"
	"database/sql"
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
func Open(ctx context.Context, dsn string, o *sqladapter.Options) (*sqladapter.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open postgres database: %w", err)
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	dialect, err := detect(ctx, pool)
	if err != nil {
		pool.Close() // what went wrong is known already
		return nil, fmt.Errorf("open postgres database: %w", err)
	}
	return sqladapter.Open(ctx, sqladapter.Pools{Write: pool}, dialect, o)
}

// connections is how many connections are used at once.
const connections = 8

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
