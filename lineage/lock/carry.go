package lock

import (
	"context"
	"errors"
	"sync"
)

// carry is the lock of a running With, carried by the context of its function.
type carry struct {
	outer    *carry // of the context that With was called with
	lock     *Lock
	lockFile string

	mu    sync.Mutex
	calls int // running nested calls
	ended bool
	idle  sync.Cond // no nested call is running; uses mu
}

type carryKey struct{}

// newCarry returns the carry for a With that has acquired a lock.
func newCarry(ctx context.Context, l *Lock) *carry {
	c := &carry{lock: l, lockFile: l.held.lockFile}
	c.outer, _ = ctx.Value(carryKey{}).(*carry)
	c.idle.L = &c.mu
	return c
}

// enter begins a nested call with the lock in ctx on the same file as another. It returns nil if
// there is none; otherwise the call must end with leave.
func enter(ctx context.Context, another *Lock) *carry {
	c, _ := ctx.Value(carryKey{}).(*carry)
	if c == nil {
		return nil
	}
	lockFile, err := lockFilePath(another.path)
	if err != nil {
		return nil // acquiring it returns the same error
	}
	for ; c != nil; c = c.outer {
		if c.lockFile == lockFile && c.enter() {
			return c
		}
	}
	return nil
}

func (c *carry) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended && c.calls == 0 || !c.lock.holds() {
		return false
	}
	c.calls++
	return true
}

func (c *carry) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.calls == 0 {
		c.idle.Broadcast()
	}
}

// end waits for running nested calls and those that they begin. After that, no call can begin.
func (c *carry) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for c.calls > 0 {
		c.idle.Wait()
	}
}

// run runs the function of a nested call that enter has begun.
func (c *carry) run(ctx context.Context, fn func(context.Context) error) (err error) {
	held, cancel := c.lock.Context(ctx)
	defer func() {
		if lost := c.lock.lost(); lost != nil && !errors.Is(err, ErrLost) {
			err = errors.Join(err, lost)
		}
		cancel()
		c.leave()
	}()
	return fn(held)
}
