// Package sqlserver stores chats in a SQL Server database, 2016 or later.
package sqlserver

import (
	"context"
	"database/sql"
	"fmt"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Open opens the database of a DSN ("sqlserver://user:password@host?database=…") and creates missing tables. It
// adopts a database with the documented tables.
func Open(ctx context.Context, dsn string, o sqladapter.Options) (*sqladapter.DB, error) {
	connector, err := mssql.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("open sqlserver database: %w", err)
	}
	pool := sql.OpenDB(connector)
	o.LimitPool(pool, connections)
	return sqlchat.Open(ctx, sqladapter.Pools{Write: pool}, Dialect{}, o)
}

// New is like Open, for an existing pool, which the caller must close. Its driver must be go-mssqldb.
func New(ctx context.Context, pool *sql.DB, o sqladapter.Options) (*sqladapter.DB, error) {
	return sqlchat.Open(ctx, sqladapter.Pools{Write: pool, Shared: true}, Dialect{}, o)
}

// connections is the default number of connections.
const connections = 8
