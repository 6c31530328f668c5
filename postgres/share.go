package postgres

import (
	"context"
)

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
