// Package sqlserver keeps chats in a SQL Server database, 2016 or later.
package sqlserver

import (
	"context"
	"database/sql"
	"fmt"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/lineage-store/lineage/sqladapter"
)

// Open opens the database that a DSN names ("sqlserver://user:password@host?database=…")
// and makes the tables that are not there. One made by others with the documented
// tables is taken as it is.
func Open(ctx context.Context, dsn string, o sqladapter.Options) (*sqladapter.DB, error) {
	connector, err := mssql.NewConnector(dsn)
	if err != nil {
		return nil, fmt.Errorf("open sqlserver database: %w", err)
	}
	pool := sql.OpenDB(connector)
	o.LimitPool(pool, connections)
	return sqladapter.Open(ctx, sqladapter.Pools{Write: pool}, Dialect{}, o)
}

// New is Open for a pool that the caller has, which stays the caller's to close. Its
// driver is go-mssqldb.
func New(ctx context.Context, pool *sql.DB, o sqladapter.Options) (*sqladapter.DB, error) {
	return sqladapter.Open(ctx, sqladapter.Pools{Write: pool, Shared: true}, Dialect{}, o)
}

// connections is how many connections are used at once unless options say otherwise.
const connections = 8
