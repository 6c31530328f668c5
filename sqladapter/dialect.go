package sqladapter

import (
	"context"
	"database/sql"
)

// Dialect has the specifics of a kind of database. It has no state and is safe for concurrent use.
type Dialect interface {
	// Name is the name of the database: "sqlite", "postgres", "sqlserver".
	Name() string
	// Syntax is the syntax of features that all databases have.
	Syntax() Syntax
	// Limits are the limits of the database.
	Limits() Limits
	// Migrations create the schema, in order of their versions 1, 2, ….
	Migrations() []Migration
	// LockSchema blocks other calls of LockSchema until the end of the transaction.
	LockSchema(ctx context.Context, q Querier) error
	// Kind returns the kind of object with a name in the current schema: "table", another word such
	// as "view", or "" if there is none.
	Kind(ctx context.Context, q Querier, name string) (string, error)
	// Columns returns the columns of a table in the current schema, none if there is no such table.
	Columns(ctx context.Context, q Querier, table string) ([]string, error)
	// Classify returns the meaning of a driver's error.
	Classify(err error) Failure
	// Search describes how to find candidates of a search.
	Search() SearchSyntax
}

// Querier runs statements: a *sql.DB, *sql.Tx or *sql.Conn.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Limits are the limits of a database. Zero means no limit.
type Limits struct {
	// Parameters is the maximum number of parameters of a statement.
	Parameters int
	// Rows is the maximum number of rows of an INSERT … VALUES.
	Rows int
	// IDUnits and IDBytes are the maximum UTF-16 units and bytes of an id, name or user id.
	IDUnits, IDBytes int
	// Loose is set if the database may treat different ids as equal, for example when they differ in case or trailing
	// spaces.
	Loose bool
	// Prepared is the number of statements to keep prepared, 0 if the driver does that.
	Prepared int
	// SearchText is the maximum number of bytes of a message in the documented full-text index.
	SearchText int
}

// Migration is a step of the schema, run in one transaction.
type Migration struct {
	Version int
	Name    string
	// Documented is run unless all documented tables of chats exist.
	Documented string
	SQL        string
	// Outside, when not empty, is run after the transaction if the query OutsideIf returns 1, because some statements
	// cannot run in a transaction. Only other programs use what it creates, so a failure is ignored.
	Outside, OutsideIf string
}

// TextLimited is a Dialect whose databases cannot store every text.
type TextLimited interface {
	// NoNUL reports whether texts and JSON must not contain NUL, nor JSON unpaired surrogates.
	NoNUL() bool
}

// Projectable is a Dialect whose databases can hold a projection.
type Projectable interface {
	Dialect
	// ProjectionSchema creates the tables with the state of the projection. LineageSchema creates the tables of
	// content and structure.
	ProjectionSchema() string
	LineageSchema() string
}

// Strings returns the values of a query with one column. It is for dialects.
func Strings(ctx context.Context, q Querier, query string, args ...any) ([]string, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, rows.Err()
}
