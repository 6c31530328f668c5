package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
)

// turnTime is how long the server may take to write a row.
const turnTime = time.Minute

// patience is how long an operation is retried when the server cannot be reached.
const patience = 10 * time.Second

const (
	shortPause = 5 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// uncertain reports whether a write with this error may have been done.
func uncertain(err error) bool {
	if err == nil || pgconn.SafeToRetry(err) {
		return false
	}
	switch sqlState(err) {
	case "", "57014", "40003": // no answer; cancelled, which may be while it waited for a standby; completion unknown
		return true
	}
	return postgres.Dialect{}.Classify(err) == sqladapter.Lost
}

// lost reports whether an error is of the connection or the server, so that the operation can be
// retried.
func lost(err error) bool {
	if err == nil {
		return false
	}
	switch (postgres.Dialect{}).Classify(err) {
	case sqladapter.Lost, sqladapter.Busy:
		return true
	}
	return pgconn.SafeToRetry(err)
}

// again retries an idempotent operation until the server answers, or patience ends.
func again(ctx context.Context, op func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		err := op(limited)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !lost(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limited.Done():
			return explain(err)
		case <-time.After(pause):
		}
	}
}

// explain adds the meaning of an error of the server.
func explain(err error) error { return sqladapter.Explain(postgres.Dialect{}, err) }
