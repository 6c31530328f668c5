package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
)

// writeTime is how long the server may take for a statement that writes. Tests change it.
var writeTime = time.Minute

// readTime is how long it may take to read a part of the log.
const readTime = 5 * time.Minute

// idleTime is how long a client may leave a transaction idle that holds the store. Tests change it.
var idleTime = 30 * time.Second

// connectionTime is how long an operation waits for a free connection. Tests change it.
var connectionTime = 30 * time.Second

// lockTime is how long the server waits for a lock: longer than idleTime, so that a stopped client is waited for.
const lockTime = 45 * time.Second

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// patience is how long an operation is retried when the server cannot be reached. Tests change it.
var patience = 10 * time.Second

const (
	shortPause = 5 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// mostRetries limits the attempts of a statement that conflicts with others.
const mostRetries = 100

// withRetry retries an idempotent operation until the server answers, or patience ends.
func withRetry(ctx context.Context, op func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return retry(ctx, func(context.Context) error {
		err := op(limited)
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, sqladapter.ErrBusy) { // not of the caller
			err = fmt.Errorf("%w: no answer in %v: %w", sqladapter.ErrBusy, patience, err)
		}
		return err
	})
}

// withLongRetry is like withRetry, for an operation on much data, an attempt of which may take longer than patience. An attempt
// that fails after that time is not repeated.
func withLongRetry(ctx context.Context, limit time.Duration, op func(context.Context) error) error {
	return retry(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return op(ctx)
	})
}

func retry(ctx context.Context, op func(context.Context) error) error {
	begun := time.Now()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		err := op(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !isTransient(err) {
			return explain(err)
		}
		if time.Since(begun)+pause > patience {
			return explain(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// explain adds the meaning of an error of the server.
func explain(err error) error { return sqladapter.Explain(postgres.Dialect{}, err) }
