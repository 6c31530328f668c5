package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
	"github.com/lineage-store/lineage/structure"
)

// Options configure an engine. Store is required, and the zero value of each other field is a
// default.
type Options struct {
	// Store names the store in the database.
	Store string
	// Durability of commits that ask for none. Default Full.
	Durability backend.Durability
	// CacheBytes limits the memory of the caches. Default DefaultCache.
	CacheBytes int
	// MustExist refuses to create a store.
	MustExist bool
	// ID is the id of a new store; random when zero.
	ID structure.StoreID
	// Unsafe accepts a server with fsync=off, which loses acknowledged commits when its machine
	// stops. It is for tests.
	Unsafe bool
	// Progress, when not nil, is called while the store of an earlier version is prepared, with the
	// commits done and to do.
	Progress func(done, total int64)
	// Logger reports repairs; nil discards them.
	Logger *slog.Logger
}

// MaxName is the largest size of the name of a store, in bytes.
const MaxName = 200

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	// Of the latest state.
	answers
	resume.Sequences

	log    *log
	o      Options
	shared bool // the pool is the caller's to close

	queue   chan *pending
	ctx     context.Context // ends when the engine is closed
	cancel  context.CancelCauseFunc
	going   sync.WaitGroup
	stopped chan struct{} // closed when no more commits are taken
	closed  atomic.Bool
	calls   sync.Mutex // held while a call begins, and while Close does

	// writing is held while commits are judged and written. It guards the fields up to contended.
	writing sync.Mutex
	judging *judging
	// judgedIn identifies the history whose contexts and runs the cache of judging has, and head the state of that cache.
	judgedIn *cache
	head     head
	warm     *table // the table of that state, if this process wrote last
	// contended is the number of the next batches that lock the store before they are judged, because other processes write.
	contended int

	cache atomic.Pointer[cache]

	search    *searchindex.Index
	searching share // of the connections

	collecting sync.Mutex // one collection of this process at a time

	changed   changed
	pruning   pruning
	answering answering
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
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCache
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	connections := pool.Stat().MaxConns()
	e := &Engine{log: &log{pool: pool, flushing: newShare(connections - 1), store: keyOf(o.Store)}, o: o, searching: newShare(connections / 2), shared: shared, queue: make(chan *pending, mostGathered), stopped: make(chan struct{})}
	e.answers, e.Sequences = answers{e}, e.sequences(need{})
	e.search = searchindex.New(searchServer{e}, e.log.store)
	e.judging = newJudging(&e.log.clock)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	err := withRetry(ctx, func(ctx context.Context) error { return e.log.prepare(ctx, o) })
	if err == nil {
		err = e.fill(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", o.Store, explain(err))
	}
	go e.lead()
	return e, nil
}

// forget replaces the cache after a collection, or when the log has another history.
func (e *Engine) forget(ctx context.Context, was *cache) error {
	st, _, _, err := e.log.latest(ctx, known{}, need{})
	if err == nil {
		e.cache.CompareAndSwap(was, newCache(st, e.o.CacheBytes))
	}
	return err
}

// StoreID implements backend.Identified.
func (e *Engine) StoreID() [16]byte { return e.log.identity }

// Close implements backend.Engine.
func (e *Engine) Close() error {
	e.calls.Lock() // none begins from now on
	was := e.closed.Swap(true)
	e.calls.Unlock()
	if was {
		return nil
	}
	e.cancel(errClosed)
	e.changed.announce()
	<-e.stopped
	e.going.Wait()
	e.writing.Lock() // waits for a batch or a collection
	defer e.writing.Unlock()
	if !e.shared {
		e.log.pool.Close()
	}
	return nil
}

// begin keeps Close waiting until e.going.Done.
func (e *Engine) begin() error {
	e.calls.Lock()
	defer e.calls.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	e.going.Add(1)
	return nil
}

// ended returns errClosed for the error of a call that Close ended.
func (e *Engine) ended(err error) error {
	if err != nil && e.closed.Load() {
		return errClosed
	}
	return err
}

var errClosed = fmt.Errorf("store: %w", backend.ErrClosed)
