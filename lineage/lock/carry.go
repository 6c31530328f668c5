package lock

import (
	"context"
	"errors"
	"sync"
)

// carry is the lock of a running With, carried by the context of its function.
type carry struct {
	outer *carry // of the context that With was called with
	held  *holding

	mu    sync.Mutex
	calls int           // running: that of With, and nested ones
	done  chan struct{} // closed when all have returned; no call can begin then
}

type carryKey struct{}

// newCarry returns the carry for a With that has acquired a lock.
func newCarry(ctx context.Context, held *holding) *carry {
	c := &carry{held: held, calls: 1, done: make(chan struct{})}
	c.outer, _ = ctx.Value(carryKey{}).(*carry)
	return c
}

// enter begins a nested call with the lock in ctx on the file at path. It returns nil if there is
// none; otherwise the call must end with leave.
func enter(ctx context.Context, path string) *carry {
	c, _ := ctx.Value(carryKey{}).(*carry)
	if c == nil {
		return nil
	}
	lockFile, err := lockFilePath(path)
	if err != nil {
		return nil // acquiring it returns the same error
	}
	for ; c != nil; c = c.outer {
		if c.held.lockFile == lockFile && c.enter() {
			return c
		}
	}
	return nil
}

func (c *carry) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == 0 || c.held.ctx.Err() != nil {
		return false
	}
	c.calls++
	return true
}

func (c *carry) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls == 0 {
		close(c.done)
	}
}

// run runs the function of a nested call that enter has begun.
func (c *carry) run(ctx context.Context, fn func(context.Context) error) (err error) {
	held, cancel := c.held.context(ctx)
	defer func() {
		if lost := c.held.lost(); lost != nil && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
		cancel()
		c.leave()
	}()
	return fn(held)
}
