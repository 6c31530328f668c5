package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
)

// database is an open SQL database whose threads a command works on.
type database struct {
	*app
	db    *sqladapter.DB
	chats chat.Store
	// current is the id of the current thread, empty while there is none.
	current string
	refs    *refs.Chats
}

// dsn returns the database that commands work on, empty when it is a store.
func (a *app) dsn() string {
	if named := a.namedStore(); isDSN(named) {
		return named
	}
	return ""
}

// onDB runs something on a database, by its name.
func onDB(ctx context.Context, dsn string, schema sqladapter.Schema, run func(*sqladapter.DB) error) error {
	if path, isFile := sqliteFile(dsn); isFile && path != "" && schema != sqladapter.CreateTables {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return &databaseError{name: redact(dsn), err: fs.ErrNotExist, secret: dsn}
		}
	}
	db, err := openDB(ctx, dsn, schema)
	if err != nil {
		return err
	}
	return errors.Join(run(db), db.Close())
}

// openDB opens a database by its name.
func openDB(ctx context.Context, dsn string, schema sqladapter.Schema) (db *sqladapter.DB, err error) {
	path, isFile := sqliteFile(dsn)
	o := sqladapter.Options{Schema: schema}
	switch {
	case isFile && path == "":
		return nil, usagef("sqlite: the file is missing")
	case isFile:
		db, err = sqlite.Open(ctx, path, o)
	case strings.HasPrefix(dsn, "sqlserver://"):
		db, err = sqlserver.Open(ctx, dsn, o)
	default:
		db, err = postgres.Open(ctx, dsn, o)
	}
	if err != nil {
		// Drivers may repeat the name, password and all.
		return nil, databaseHint(&databaseError{name: redact(dsn), err: err, secret: dsn})
	}
	return db, nil
}

// needDSN refuses an argument that is not a database.
func needDSN(dsn string) error {
	if !isDSN(dsn) {
		return hint(usagef("%s: not a database", dsn), "write sqlite:FILE, postgres://… or sqlserver://…")
	}
	return nil
}

// databaseError adds the name of the database to an error.
type databaseError struct {
	name, secret string
	err          error
}

func (e *databaseError) Error() string {
	return "database " + e.name + ": " + strings.ReplaceAll(e.err.Error(), e.secret, e.name)
}

func (e *databaseError) Unwrap() error { return e.err }

// openDatabase runs a command on the database that is named.
func (a *app) openDatabase(ctx context.Context, mode openMode, run func(context.Context, *database) error) error {
	schema := sqladapter.AdoptTables
	switch {
	case mode.has(begins):
		schema = sqladapter.CreateTables
	case mode.has(reading):
		schema = sqladapter.KeepTables
	}
	err := onDB(ctx, a.dsn(), schema, func(db *sqladapter.DB) error {
		d := &database{app: a, db: db, chats: sqlchat.On(db)}
		if name := a.namedThread(); name != "" {
			c, err := refs.NewChats(d.chats, "").Chat(ctx, name)
			if err != nil {
				return err
			}
			d.current = c.ID
		} else {
			for c, err := range d.chats.ListChats(ctx, chat.ListOptions{Limit: 1}) {
				if err != nil {
					return err
				}
				d.current = c.ID
			}
		}
		d.refs = refs.NewChats(d.chats, d.current)
		return run(ctx, d)
	})
	var failed *databaseError
	switch isFile := strings.HasPrefix(a.dsn(), "sqlite:"); {
	case errors.As(err, &failed) && failed.err == fs.ErrNotExist: // of onDB; a socket of a server may be missing too
		return hint(err, "'lineage thread create --id ID' makes one, and so does 'lineage append'")
	case errors.Is(err, sqladapter.ErrNoTables) && !isFile:
		return hint(err, "'lineage thread create' and 'lineage append' create them; a store on a PostgreSQL server is named by 'postgres://…?store=NAME'")
	case errors.Is(err, sqladapter.ErrNoTables):
		return hint(err, "'lineage thread create' and 'lineage append' create them")
	}
	return err
}
