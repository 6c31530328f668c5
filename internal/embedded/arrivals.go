package embedded

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
)

// arrivals wakes the goroutines that wait for commits. Without waiters, announcing is
// one atomic load.
type arrivals struct {
	next atomic.Pointer[chan struct{}] // closed at the next commit; nil without waiters
}

// announce must be called after the commit's number is published: a waiter that did
// not see the number already holds the channel.
func (a *arrivals) announce() {
	if a.next.Load() == nil {
		return
	}
	if next := a.next.Swap(nil); next != nil {
		close(*next)
	}
}

// wait returns a channel that is closed when the next commit is published.
func (a *arrivals) wait() <-chan struct{} {
	for {
		if next := a.next.Load(); next != nil {
			return *next
		}
		next := make(chan struct{})
		if a.next.CompareAndSwap(nil, &next) {
			return next
		}
	}
}

// Wait implements backend.Engine.
func (e *Engine) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	if err := e.begin(); err != nil {
		return backend.Cursor{}, err
	}
	err := e.follows(after)
	e.end()
	if err != nil {
		return backend.Cursor{}, err
	}
	for {
		arrived := e.arrivals.wait()
		if e.closed.Load() {
			return backend.Cursor{}, fmt.Errorf("store: %w", backend.ErrClosed)
		}
		if e.index.Number() > after.Number {
			return read.CursorOf(e.index.State()), nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return backend.Cursor{}, context.Cause(ctx)
		}
	}
}
