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
	"github.com/lineage-store/lineage/internal/embedded/live"
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
	// Replica is a directory for the replica, the copy of the store that answers reads. Its name
	// there has the id of the store. Opening is ErrLocked while another process uses it. By default
	// the replica is in memory, and is read from the server whenever the store is opened.
	Replica string
	// MustExist refuses to create a store.
	MustExist bool
	// ID is the id of a new store; random when zero.
	ID structure.StoreID
	// Unsafe accepts a server with fsync=off, which loses acknowledged commits when its machine
	// stops. It is for tests.
	Unsafe bool
	// Progress, when not nil, is called while the log is read for the first time, with the
	// commits done and to do.
	Progress func(done, total int64)
	// Logger reports repairs; nil discards them.
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

	// turn is held while the replica changes. It guards the fields up to reads.
	turn sync.Mutex
	head head // the last row that both the replica and the log have
	// live filters rows while the collection of the epoch is pending; nil if none was pending when
	// the replica was opened.
	live *live.Set
	// contended is the number of turns that lock the store first, because other processes write.
	contended int
	// careful is set after a batch failed that the replica already had. Until a commit succeeds,
	// commits are written one by one, to the log before the replica.
	careful bool
	write   func(embedded.Sequenced) (id uint64, err error) // called with a commit that the replica has judged

	known atomic.Pointer[head] // head, for use without the turn; nil while there is no complete replica

	// reads is held for reading while the replica is read, and for writing while it is ahead of the
	// log or is replaced.
	reads   sync.RWMutex
	replica *embedded.Engine // nil after it was dropped
	whole   bool             // it has caught up with the log since it was opened; before that it is not read

	collecting sync.Mutex // one collection of this process at a time

	looks   looks
	durable atomic.Pointer[durable]
	changed changed
}

var (
	_ backend.Engine     = (*Engine)(nil)
	_ backend.Identified = (*Engine)(nil)
)

// Open opens a store in the database that a connection string names. It creates the store and the
// tables if necessary.
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

// New is Open with a pool of the caller, who closes it. If a pooler is in front of the server, the
// pool's DefaultQueryExecMode must not prepare statements. Unlike with Open, a commit whose wait for a
// synchronous standby is cancelled on the server counts as durable.
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
		if err := e.log.requireKeys(ctx); err != nil {
			return err
		}
		if err := e.log.register(ctx, o.Store, o.ID, !o.MustExist); err != nil || o.Unsafe {
			return err
		}
		return e.log.requireSafe(ctx)
	})
	if err == nil {
		if o.Replica != "" { // not the directory itself: a replica may be removed
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

// start opens the replica and lets it catch up with the log.
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
	e.turn.Lock() // waits until the replica has caught up
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
