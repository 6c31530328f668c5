package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
	"github.com/lineage-store/lineage/structure"
)

var _ searched.Engine = (*Engine)(nil)

// SearchIndex returns the search index of the store, which is in tables of the server.
func (e *Engine) SearchIndex() searched.Index { return e.search }

// searchable describes a collection to the search index.
func (e *Engine) searchable(c collected) searchindex.Collection {
	return searchindex.Collection{Epoch: int64(c.epoch), View: e, Last: func(id structure.RunID) (uint64, bool) {
		r, lives := c.live.Run(id)
		return r.Live, lives
	}}
}

// searchServer executes statements for the search index.
type searchServer struct{ *Engine }

// begin keeps Close waiting, and waits for a connection of those for searches.
func (s searchServer) begin(ctx context.Context) (end func(), err error) {
	if err := s.Engine.begin(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if err := s.searching.Acquire(ctx); err != nil {
		s.going.Done()
		return nil, s.ended(unsent(err))
	}
	return func() {
		s.searching.Release()
		s.going.Done()
	}, nil
}

// plansSQL has the tables of the index read through their indexes, of which each begins with the store, also without
// statistics. Compiling a statement takes longer than most searches.
const plansSQL = `SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

// Read implements searchindex.Server.
func (s searchServer) Read(ctx context.Context, statements func(*pgx.Batch)) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return s.ended(withLongRetry(ctx, readTime, func(ctx context.Context) error {
		return s.log.read(ctx, func(b *pgx.Batch) {
			b.Queue(plansSQL)
			statements(b)
		})
	}))
}

// Write implements searchindex.Server. What is written can be made from the log again, so it need not be synced.
func (s searchServer) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return s.ended(withLongRetry(ctx, 2*writeTime, func(ctx context.Context) error { // the server answers first
		conn, err := s.log.acquire(ctx)
		if err != nil {
			return err
		}
		t := &writeTx{log: s.log, conn: conn}
		defer t.rollback()
		begun := false
		execute := func(statements func(*pgx.Batch)) error {
			var b pgx.Batch
			if !begun {
				begin(&b)
				queueDurability(&b, backend.Normal)
				b.Queue(plansSQL)
				begun = true
			}
			statements(&b)
			return send(ctx, conn, &b)
		}
		if err := do(execute); err != nil {
			return err
		}
		return execute(func(b *pgx.Batch) { b.Queue(`COMMIT`) })
	}))
}

// Denied implements searchindex.Server.
func (searchServer) Denied(err error) bool {
	state := sqlState(err)
	return state == insufficient || state == readOnlyTransaction
}

// Slow implements searchindex.Server.
func (searchServer) Slow(err error) bool {
	switch sqlState(err) {
	case queryCanceled, transactionTimeout:
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(unsentError))
}

// Damaged implements searchindex.Server.
func (searchServer) Damaged(err error) bool {
	state := sqlState(err)
	return strings.HasPrefix(state, "21") || strings.HasPrefix(state, "23") // cardinality, constraints
}
