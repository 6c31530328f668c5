package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
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
	config.ConnConfig.RuntimeParams["client_encoding"] = "UTF8" // of names of stores, whatever the database has
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

// New is like Open, with a pool of the caller, who closes it. If a pooler is in front of the server, the
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
	connections := int(pool.Stat().MaxConns())
	e := &Engine{
		log:       &log{pool: pool, flushing: semaphore.New(max(1, connections-1)), store: keyOf(o.Store)},
		o:         o,
		shared:    shared,
		queue:     make(queue, mostGathered),
		stopped:   make(chan struct{}),
		searching: semaphore.New(max(1, connections/2)),
	}
	e.reads, e.Sequences = reads{e}, e.sequences(need{})
	e.search = searchindex.New(searchServer{e}, e.log.store)
	e.judging = newJudging(&e.log.clock)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.answering = answering{log: e.log, queue: e.queue, closed: e.ctx}
	e.pruning.busy = make(chan struct{}, 1)
	err := e.log.prepare(ctx, o)
	if err == nil {
		err = e.fill(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", o.Store, explain(err))
	}
	go e.lead()
	return e, nil
}

// MaxName is the largest size of the name of a store, in bytes.
const MaxName = 200

// keyOf returns the key of the rows of a store.
func keyOf(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return sum[:16]
}
