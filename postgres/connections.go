package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lineage-store/lineage/sqladapter"
)

// connectionTime is how long an operation waits for a free connection. Tests make it shorter.
var connectionTime = 30 * time.Second

// unsentError is the error of an operation that got no connection: nothing was sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// unsent returns the error of a wait for a connection. It is ErrBusy if none was free in time.
func unsent(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: no connection was free in time: %w", sqladapter.ErrBusy, err)
	}
	return unsentError{err}
}

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

// Some operations may take long: searches, and synced writes, which may wait for a standby. Each kind has its share of the
// connections, so that commits find a free one.

// share is a number of connections that one kind of operation may use at the same time.
type share chan struct{}

func newShare(connections int32) share { return make(share, max(1, connections)) }

// enter waits until one of the share is free. The caller leaves afterwards. Its error is an unsentError.
func (s share) enter(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unsent(context.Cause(ctx))
	}
}

func (s share) leave() { <-s }
