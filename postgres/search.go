package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
)

var _ searched.Engine = (*Engine)(nil)

// SearchIndex returns the search index of the store, which is in tables of the server.
func (e *Engine) SearchIndex() searched.Index { return e.search }

// searchServer executes statements for the search index.
type searchServer struct{ *Engine }

// plansSQL has the tables of the index read through their indexes, of which each begins with the store, also without
// statistics. Compiling a statement takes longer than most searches.
const plansSQL = `SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true)`

// Read implements searchindex.Server.
func (s searchServer) Read(ctx context.Context, statements func(*pgx.Batch)) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.going.Done()
	return s.ended(atLength(ctx, readTime, func(ctx context.Context) error {
		return s.log.read(ctx, func(b *pgx.Batch) {
			b.Queue(plansSQL)
			statements(b)
		})
	}))
}

// Write implements searchindex.Server. What is written can be made from the log again, so it need not be synced.
func (s searchServer) Write(ctx context.Context, do func(searchindex.Tx) error) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.going.Done()
	return s.ended(atLength(ctx, turnTime, func(ctx context.Context) error {
		conn, err := s.log.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		t := &turn{log: s.log, conn: conn}
		defer t.rollback()
		begun := false
		send := func(statements func(*pgx.Batch)) error {
			var b pgx.Batch
			if !begun {
				begin(&b)
				queueDurability(&b, backend.Normal)
				b.Queue(plansSQL)
				begun = true
			}
			statements(&b)
			return conn.SendBatch(ctx, &b).Close()
		}
		if err := do(send); err != nil {
			return err
		}
		return send(func(b *pgx.Batch) { b.Queue(`COMMIT`) })
	}))
}

// Denied implements searchindex.Server.
func (searchServer) Denied(err error) bool {
	state := sqlState(err)
	return state == insufficient || state == readOnlyTransaction
}

// Damaged implements searchindex.Server.
func (searchServer) Damaged(err error) bool {
	state := sqlState(err)
	return strings.HasPrefix(state, "21") || strings.HasPrefix(state, "23") // cardinality, constraints
}
