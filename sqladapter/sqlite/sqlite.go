// Package sqlite stores chats in a SQLite file.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/lineage-store/lineage/internal/sqlitefile"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Memory is the path of a database in memory, which is lost when it is closed.
const Memory = sqlitefile.Memory

// readers is the default number of connections for reading.
const readers = 4

// waiting limits how long SQLite itself waits for locks of other processes.
const waiting = 10 * time.Second

// Open opens the database in a file, or in memory. If the file does not exist, Open creates it with its folders. Open
// adopts a database with the documented tables.
func Open(ctx context.Context, path string, o sqladapter.Options) (*sqladapter.DB, error) {
	if path == "" {
		return nil, fmt.Errorf("open sqlite database: no path: %w", chat.ErrInvalid)
	}
	if o.Schema != sqladapter.CreateTables && path != Memory {
		if err := check(ctx, path, o); err != nil {
			return nil, fmt.Errorf("open %q: %w", path, err)
		}
	}
	if path != Memory {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, fmt.Errorf("open sqlite database: %w", err)
		}
	}
	pools, err := connect(path, o)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	db, err := sqlchat.Open(ctx, pools, Dialect{}, o)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	return db, nil
}

// New is like Open, for an existing pool, which the caller must close. Its driver must be
// modernc.org/sqlite. Its settings are not changed: foreign keys should be on, and a pool of a
// database in memory must have one connection.
func New(ctx context.Context, pool *sql.DB, o sqladapter.Options) (*sqladapter.DB, error) {
	return sqlchat.Open(ctx, sqladapter.Pools{Write: pool, Shared: true}, Dialect{}, o)
}

// check refuses a file that is missing or has no tables, before connections with settings could change it.
func check(ctx context.Context, path string, o sqladapter.Options) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("%w: %w", sqladapter.ErrNoTables, err)
	}
	pool, err := sql.Open("sqlite", sqlitefile.DSN(path, "deferred", timeout(o), "query_only(ON)"))
	if err != nil {
		return err
	}
	return errors.Join(sqladapter.CheckTables(ctx, pool, Dialect{}, o), pool.Close())
}

// connect opens a connection for writing and several for reading.
func connect(path string, o sqladapter.Options) (sqladapter.Pools, error) {
	write, err := sql.Open("sqlite", dsn(path, "immediate", timeout(o)))
	if err != nil {
		return sqladapter.Pools{}, err
	}
	write.SetMaxOpenConns(1)
	if path == Memory {
		write.SetConnMaxLifetime(0)
		write.SetMaxIdleConns(1)
		return sqladapter.Pools{Write: write}, nil
	}
	read, err := sql.Open("sqlite", dsn(path, "deferred", timeout(o), "query_only(ON)"))
	if err != nil {
		return sqladapter.Pools{}, errors.Join(err, write.Close())
	}
	o.LimitPool(read, readers)
	return sqladapter.Pools{Write: write, Read: read}, nil
}

// timeout returns the setting for how long SQLite waits for other processes.
func timeout(o sqladapter.Options) string {
	wait := waiting
	if o.Patience > 0 {
		wait = min(wait, o.Patience)
	}
	return fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds())
}

// dsn returns the DSN of a file with the settings of a connection.
func dsn(path, lock, timeout string, more ...string) string {
	return sqlitefile.DSN(path, lock, slices.Concat([]string{timeout}, sqlitefile.Settings[:], more)...)
}
