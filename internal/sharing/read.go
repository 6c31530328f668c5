package sharing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	// writerInterval is how often a reader checks whether a writer waits for the lock.
	writerInterval = 50 * time.Millisecond
	// writerTime is how long a reader that closed the store for a writer keeps it closed. It is longer than the
	// pauses of writers.
	writerTime = 2 * longPause
)

// read opens the store without writing to it. The lock is shared with other readers and excludes writers, so it is
// released as soon as a writer requests it.
func (e *Engine) read(ctx context.Context) (*storeHandle, error) {
	if at := e.yieldedAt.Load(); at != nil && time.Since(*at) < writerTime {
		return nil, fmt.Errorf("open store %s: %w", e.dir, &backend.LockedError{Path: e.dir})
	}
	o := e.o.Options
	o.Wait, o.Waiting = 0, nil
	lockAsked := e.lockAskedAt()
	own, err := embedded.Open(ctx, e.dir, o)
	if err != nil {
		return nil, err
	}
	return &storeHandle{Engine: own, own: own, readOnly: true, lockAsked: lockAsked, done: make(chan struct{})}, nil
}

// yieldToWriters drops the handle of a reader when a process requests the lock.
func (e *Engine) yieldToWriters(h *storeHandle) {
	tick := time.NewTicker(writerInterval)
	defer tick.Stop()
	for e.lockAskedAt().Equal(h.lockAsked) {
		select {
		case <-h.done:
			return
		case <-tick.C:
		}
	}
	now := time.Now()
	e.yieldedAt.Store(&now)
	e.lose(h)
}

// lockAskedAt returns the time of the last failed request for the lock. It is zero if there is no lock file, because
// readers do not create one.
func (e *Engine) lockAskedAt() time.Time {
	if info, err := os.Lstat(filepath.Join(e.dir, embedded.LockFile)); err == nil && info.Mode().IsRegular() {
		return info.ModTime()
	}
	return time.Time{}
}
