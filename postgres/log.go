package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/internal/semaphore"
)

// log has the statements on the log of one store. It does not interpret commits.
//
// All statements are in transactions with an explicit isolation level: see transaction.go.
type log struct {
	pool     *pgxpool.Pool
	flushing semaphore.Semaphore // the connections for synced writes, which may wait for a standby; commits find others free
	store    []byte
	identity [16]byte
	clock    clock
}

// exec is how statements are sent unless the connection string has another mode: with their
// parameters in one round trip, and not prepared, because of poolers in transaction mode.
const exec = pgx.QueryExecModeExec

// acquire returns a connection. Its error is an unsentError.
func (l *log) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectionTime)
	defer cancel()
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return nil, unsent(err)
	}
	return conn, nil
}
