package embedded

import (
	"context"
	"fmt"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

// arrivals wakes those who wait for commits. Announcing costs a lock and nothing
// else while nobody waits.
type arrivals struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next commit; nil while nobody waits
}

func (a *arrivals) announce() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next != nil {
		close(a.next)
		a.next = nil
	}
}

func (a *arrivals) wait() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = make(chan struct{})
	}
	return a.next
}

// Wait implements backend.Engine.
func (e *Engine) Wait(ctx context.Context, after uint64) (uint64, error) {
	for {
		arrived := e.arrivals.wait()
		if e.closed.Load() {
			return 0, fmt.Errorf("store: %w", backend.ErrClosed)
		}
		if n := e.index.State().Number; n > after {
			return n, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
