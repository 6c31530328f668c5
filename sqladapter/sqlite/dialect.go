package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/lineage-store/lineage/sqladapter"
)

//go:embed schema_documented.sql
var schemaDocumented string

//go:embed schema_1_chats.sql
var schemaChats string

//go:embed schema_2_chains.sql
var schemaChains string

//go:embed schema_3_origins.sql
var schemaOrigins string

//go:embed schema_4_deleting.sql
var schemaDeleting string

// Dialect is the dialect of SQLite.
type Dialect struct{}

// Name implements sqladapter.Dialect.
func (Dialect) Name() string { return "sqlite" }

// Syntax implements sqladapter.Dialect.
func (Dialect) Syntax() sqladapter.Syntax {
	return sqladapter.Syntax{
		Parameter: func(int) string { return "?" }, // the driver looks numbered ones up by name
		Quotes:    [2]string{`"`, `"`},
		Recursive: "RECURSIVE",
		Limit:     func(limit string) string { return "LIMIT " + limit },
		Nth:       func(before string) string { return "LIMIT 1 OFFSET " + before },
		RowValues: sqladapter.OrderedColumns,
		Metadata:  sqladapter.MetadataSyntax{Condition: hasMetadata, Args: metadataArgs},
		// The check is for single tables: a connection that has read a full-text table caches parts of it, and would
		// report damage if another connection has written since.
		Integrity: `SELECT integrity_check FROM pragma_integrity_check(?)`,
	}
}

// Limits implements sqladapter.Dialect.
func (Dialect) Limits() sqladapter.Limits {
	return sqladapter.Limits{Parameters: 32_766, Rows: 100, Prepared: 200}
}

// Migrations implements sqladapter.Dialect.
func (Dialect) Migrations() []sqladapter.Migration {
	return []sqladapter.Migration{
		{Version: 1, Name: "chats", Documented: schemaDocumented, SQL: schemaChats},
		{Version: 2, Name: "chains", SQL: schemaChains},
		{Version: 3, Name: "origins", SQL: schemaOrigins},
		{Version: 4, Name: "deleting", SQL: schemaDeleting},
	}
}

// LockSchema implements sqladapter.Dialect. It does nothing: a write transaction excludes all
// others.
func (Dialect) LockSchema(context.Context, sqladapter.Querier) error { return nil }

// Kind implements sqladapter.Dialect.
func (Dialect) Kind(ctx context.Context, q sqladapter.Querier, name string) (string, error) {
	kinds, err := sqladapter.Strings(ctx, q, `SELECT type FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type <> 'trigger'`, name)
	return strings.Join(kinds, ""), err
}

// Columns implements sqladapter.Dialect.
func (Dialect) Columns(ctx context.Context, q sqladapter.Querier, table string) ([]string, error) {
	return sqladapter.Strings(ctx, q, `SELECT name FROM pragma_table_info(?)`, table)
}

// Classify implements sqladapter.Dialect.
func (Dialect) Classify(err error) sqladapter.Failure {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return sqladapter.OtherFailure
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return sqladapter.Duplicate
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return sqladapter.Dangling
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return sqladapter.Busy
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH:
		return sqladapter.Denied
	case sqlite3.SQLITE_TOOBIG:
		return sqladapter.Unstorable
	}
	return sqladapter.OtherFailure
}
