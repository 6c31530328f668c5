// Package postgres stores chats in a Postgres database.
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
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Open opens the database of a DSN: a URL ("postgres://…"), or keywords with values ("host=… dbname=…"). It creates
// missing tables in the first schema of the search path, with names in lower case, because Postgres folds the names
// of the documented script. It adopts a database with the documented tables, also with quoted names.
func Open(ctx context.Context, dsn string, o sqladapter.Options) (*sqladapter.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open postgres database: %w", err)
	}
	config.RuntimeParams["client_encoding"] = "UTF8" // whatever the database has, or the role: texts are UTF-8
	pool := stdlib.OpenDB(*config)
	o.LimitPool(pool, connections)
	return open(ctx, sqladapter.Pools{Write: pool}, o)
}

// New is like Open, for an existing pool, which the caller must close. Its driver must be pgx, as
// returned by stdlib.OpenDB or, for a *pgxpool.Pool, stdlib.OpenDBFromPool.
func New(ctx context.Context, pool *sql.DB, o sqladapter.Options) (*sqladapter.DB, error) {
	return open(ctx, sqladapter.Pools{Write: pool, Shared: true}, o)
}

// connections is the default number of connections.
const connections = 8

func open(ctx context.Context, pools sqladapter.Pools, o sqladapter.Options) (*sqladapter.DB, error) {
	dialect, err := detect(ctx, pools.Write)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open postgres database: %w", sqladapter.Explain(dialect, err)), pools.Close())
	}
	return sqlchat.Open(ctx, pools, dialect, o)
}

// detect finds out whether the documented tables were created with quoted names.
func detect(ctx context.Context, pool *sql.DB) (Dialect, error) {
	for table, column := range map[string]string{"chats": "userId", "messages": "chatId", "branches": "chatId", "checkpoints": "chatId"} {
		columns, err := Dialect{}.Columns(ctx, pool, table)
		if err != nil || slices.Contains(columns, column) {
			return Dialect{quoted: err == nil}, err
		}
	}
	return Dialect{}, nil
}
