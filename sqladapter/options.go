package sqladapter

import (
	"database/sql"
	"errors"
	"time"
)

// Options configure the use of a database. A zero field means its default.
type Options struct {
	// Patience limits how long a write is retried while other transactions are in the way. Default 30 seconds.
	Patience time.Duration
	// Connections is the maximum number of open connections. Default 8. SQLite has one more for writing, and 4 for
	// reading by default. It does not apply to a pool of the caller.
	Connections int
	// Schema states what Open may do to the tables. Default CreateTables.
	Schema Schema
	// Trace, when not nil, is called with each statement before it runs, possibly from several
	// goroutines.
	Trace func(sql string)
}

// Schema states what Open may do to the tables of a database.
type Schema int

const (
	// CreateTables creates missing tables and migrates those of an older version.
	CreateTables Schema = iota
	// AdoptTables is CreateTables for a database that already has chats, of this package or of another program. For
	// other databases the error is ErrNoTables.
	AdoptTables
	// KeepTables neither creates nor changes a table. If tables are missing or older, the error is
	// ErrNoTables.
	KeepTables
)

func (o Options) orDefault() Options {
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	return o
}

// LimitPool sets the maximum number of connections of a pool: the one in the options, or otherwise. It is for
// packages that open databases.
func (o Options) LimitPool(pool *sql.DB, otherwise int) {
	if o.Connections > 0 {
		otherwise = o.Connections
	}
	pool.SetMaxOpenConns(otherwise)
	pool.SetMaxIdleConns(otherwise)
}

// Pools are the connections to a database.
type Pools struct {
	// Write is for transactions that write. They take write locks from the first statement on.
	Write *sql.DB
	// Read, when not nil, is for reading. It sees what Write has committed.
	Read *sql.DB
	// Shared is set if the connections belong to the caller, who closes them.
	Shared bool
}

// Close closes the connections unless they are shared.
func (p Pools) Close() error {
	if p.Shared {
		return nil
	}
	err := p.Write.Close()
	if p.Read != nil && p.Read != p.Write {
		err = errors.Join(err, p.Read.Close())
	}
	return err
}
