package postgres

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage/backend"
)

// flush makes durable what the log has up to a row. It is errDiverged if the row is not there.
func (e *Engine) flush(ctx context.Context, c *cache, h head) error {
	if h.Cursor == c.durable.at() {
		return nil
	}
	err := withRetry(ctx, func(ctx context.Context) error { return e.log.flush(ctx, h) })
	if err == nil {
		c.durable.advance(h.Cursor)
	}
	return err
}

// settle makes the latest state durable, and returns its last commit.
func (e *Engine) settle(ctx context.Context) (backend.Cursor, error) {
	for range mostRetries {
		t, err := e.latest(ctx, need{})
		if err != nil {
			return backend.Cursor{}, err
		}
		if err := e.flush(ctx, t.cache, t.state.head); !errors.Is(err, errDiverged) {
			return t.state.Cursor, e.ended(err)
		}
	}
	return backend.Cursor{}, backend.ErrDiverged
}

// Sync implements backend.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	_, err := e.settle(ctx)
	return err
}
