package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Options configure an engine. Store is required, and the zero value of each other field is a
// default.
type Options struct {
	// Store names the store in the database.
	Store string
	// Durability of commits that ask for none. Default Full.
	Durability backend.Durability
	// Replica is a directory in which the copy of the store is kept that reads are answered from,
	// under a name that says which store. Where another process uses it, opening is ErrLocked. By
	// default the copy is in memory, and read from the server whenever the store is opened.
	Replica string
	// MustExist refuses to make a store where there is none.
	MustExist bool
	// ID is the id of a store that is made; random when zero.
	ID structure.StoreID
	// Unsafe accepts a server with fsync=off, which loses what it acknowledged when its machine
	// stops. It is for tests.
	Unsafe bool
	// Progress, when not nil, is called while the log is read for the first time, with the
	// commits done and to do.
	Progress func(done, total int64)
	// Logger reports what was repaired; nil discards it.
	Logger *slog.Logger
}

// MaxName is the largest size of the name of a store, in bytes.
const MaxName = 200

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	*readers // of the latest state

	log    *log
	o      Options
	shared bool // the pool is the caller's to close

	queue  chan *pending
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelCauseFunc
	going  sync.WaitGroup
	led    chan struct{} // closed when no more commits are taken
	closed atomic.Bool

	// turn is held by who changes the replica. It guards what follows, up to reads.
	turn sync.Mutex
	head head // the last row that the replica has, and that the log has
	// live is what the pending collection of the epoch leaves of rows; nil if none was pending
	// when the replica was opened.
	live *embedded.LiveSet
	// contended counts down the turns that lock the store at once, because others write too.
	contended int
	// careful is set after a batch failed that the replica had already: the next ones are of one
	// commit each, which the replica gets afterwards.
	careful bool
	write   func(embedded.Sequenced) (id uint64, err error) // what a commit does that the replica has judged

	known atomic.Pointer[head] // the same for who has no turn; nil after the replica was dropped

	// reads is held for reading while the replica is looked at, and for writing while it is
	// ahead of the log, or replaced.
	reads   sync.RWMutex
	replica *embedded.Engine // nil after it was dropped
	whole   bool             // it was brought up to the log since it was opened; before, nobody reads it

	collecting sync.Mutex // one collection of this process at a time

	looks   looks
	durable atomic.Pointer[durable]
	changed changed
}

var (
	_ backend.Engine     = (*Engine)(nil)
	_ backend.Identified = (*Engine)(nil)
)

// Open opens a store in the database that a connection string names, and makes it, and the tables,
// if they are not there.
func Open(ctx context.Context, dsn string, o Options) (*Engine, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	if !strings.Contains(dsn, "default_query_exec_mode") {
		config.ConnConfig.DefaultQueryExecMode = exec
	}
	config.ConnConfig.OnNotice = noteCancelledWait
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", explain(err))
	}
	e, err := open(ctx, pool, o, false)
	if err != nil {
		pool.Close()
	}
	return e, err
}

// New is Open for a pool that the caller has, which stays the caller's to close. If there is a
// pooler before the server, its DefaultQueryExecMode must be one that prepares nothing. A commit whose
// wait for a synchronous standby is cancelled on the server counts as durable, which Open avoids.
func New(ctx context.Context, pool *pgxpool.Pool, o Options) (*Engine, error) {
	return open(ctx, pool, o, true)
}

func open(ctx context.Context, pool *pgxpool.Pool, o Options, shared bool) (*Engine, error) {
	if o.Store == "" || len(o.Store) > MaxName {
		return nil, fmt.Errorf("open store: its name has 1 to %d bytes: %w", MaxName, backend.ErrInvalid)
	}
	if o.Durability == backend.DefaultDurability {
		o.Durability = backend.Full
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{log: &log{pool: pool, store: keyOf(o.Store)}, o: o, shared: shared, queue: make(chan *pending, mostGathered), led: make(chan struct{})}
	e.readers = newReaders(e, false)
	e.durable.Store(new(durable))
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	err := again(ctx, func(ctx context.Context) error {
		if err := e.log.migrate(ctx, !o.MustExist); err != nil {
			return err
		}
		if err := e.log.register(ctx, o.Store, o.ID, !o.MustExist); err != nil || o.Unsafe {
			return err
		}
		return e.log.requireSafe(ctx)
	})
	if err == nil {
		if o.Replica != "" { // never what is in the directory itself: a replica may be removed
			e.o.Replica = filepath.Join(o.Replica, fmt.Sprintf("%s%x", replicaName, e.log.identity))
		}
		err = e.start(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", o.Store, explain(err))
	}
	go e.lead()
	return e, nil
}

// start opens the replica and brings it up to the log.
func (e *Engine) start(ctx context.Context) error {
	e.turn.Lock()
	defer e.turn.Unlock()
	err := e.renew(ctx)
	if err != nil && e.replica != nil {
		err = errors.Join(err, e.replica.Close())
	}
	return err
}

// StoreID implements backend.Identified.
func (e *Engine) StoreID() [16]byte { return e.log.identity }

// Close implements backend.Engine.
func (e *Engine) Close() error {
	e.looks.mu.Lock() // no look begins from now on
	was := e.closed.Swap(true)
	e.looks.mu.Unlock()
	if was {
		return nil
	}
	e.cancel(errClosed)
	e.changed.announce()
	<-e.led
	e.going.Wait()
	e.turn.Lock() // waits for who brings the replica up to the log
	defer e.turn.Unlock()
	e.reads.Lock()
	defer e.reads.Unlock()
	var err error
	if e.replica != nil {
		err = e.replica.Close()
	}
	if !e.shared {
		e.log.pool.Close()
	}
	return err
}

var errClosed = fmt.Errorf("store: %w", backend.ErrClosed)
