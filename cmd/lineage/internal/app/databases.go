package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
)

// DSN returns the name of the database that commands work on. It is empty if they work on a store.
func (a *App) DSN() string {
	if named := a.NamedStore(); IsDSN(named) {
		return named
	}
	return ""
}

// OnDB calls run with a database.
func OnDB(ctx context.Context, dsn string, schema sqladapter.Schema, run func(*sqladapter.DB) error) error {
	if path, isFile := sqliteFile(dsn); isFile && path != "" && schema != sqladapter.CreateTables {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return &DatabaseError{name: Redact(dsn), Err: fs.ErrNotExist, secret: dsn}
		}
	}
	db, err := OpenDB(ctx, dsn, schema)
	if err != nil {
		return err
	}
	return errors.Join(run(db), db.Close())
}

// OpenDB opens a database.
func OpenDB(ctx context.Context, dsn string, schema sqladapter.Schema) (db *sqladapter.DB, err error) {
	path, isFile := sqliteFile(dsn)
	o := sqladapter.Options{Schema: schema}
	switch {
	case isFile && path == "":
		return nil, Usagef("sqlite: the file is missing")
	case isFile:
		db, err = sqlite.Open(ctx, path, o)
	case strings.HasPrefix(dsn, "sqlserver://"):
		db, err = sqlserver.Open(ctx, dsn, o)
	default:
		db, err = postgres.Open(ctx, dsn, o)
	}
	if err != nil {
		// Drivers may repeat the name, including its password.
		return nil, DatabaseHint(&DatabaseError{name: Redact(dsn), Err: err, secret: dsn})
	}
	return db, nil
}

// NeedDSN returns an error unless an argument is the name of a database.
func NeedDSN(dsn string) error {
	if !IsDSN(dsn) {
		return Hint(Usagef("%s: not a database", dsn), "write sqlite:FILE, postgres://… or sqlserver://…")
	}
	return nil
}

// DatabaseError adds the name of the database to an error.
type DatabaseError struct {
	name, secret string
	Err          error
}

func (e *DatabaseError) Error() string {
	return "database " + e.name + ": " + strings.ReplaceAll(e.Err.Error(), e.secret, e.name)
}

func (e *DatabaseError) Unwrap() error { return e.Err }

// DatabaseHint adds a hint to an error of a database.
func DatabaseHint(err error) error {
	switch {
	case errors.Is(err, project.ErrOtherStore), errors.Is(err, project.ErrNotEmpty), errors.Is(err, sqladapter.ErrForeign):
		return Hint(err, "give a database of its own for each store")
	case errors.Is(err, project.ErrNotProjected), errors.Is(err, project.ErrBehind):
		return Hint(err, "'lineage project' brings it up to date")
	}
	return err
}
