package lock

import (
	"context"
	"errors"
	"sync"
)

// carry is a lock that a call of With holds, in the context of its function.
type carry struct {
	outer    *carry // what the context of the call carried
	lock     *Lock
	lockFile string

	mu    sync.Mutex
	calls int // nested ones that are running
	ended bool
	idle  sync.Cond // no nested call is running; its lock is mu
}

type carryKey struct{}

// newCarry returns what the context of a function carries whose call of With has
// taken a lock.
func newCarry(ctx context.Context, l *Lock) *carry {
	c := &carry{lock: l, lockFile: l.held.lockFile}
	c.outer, _ = ctx.Value(carryKey{}).(*carry)
	c.idle.L = &c.mu
	return c
}

// enter begins a nested call with the lock that a context carries for the file of
// another. It returns nil where there is none; otherwise the call ends with leave.
func enter(ctx context.Context, another *Lock) *carry {
	c, _ := ctx.Value(carryKey{}).(*carry)
	if c == nil {
		return nil
	}
	lockFile, err := lockFilePath(another.path)
	if err != nil {
		return nil // acquiring it fails in the same way
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

// end waits for the nested calls that are running, and for those that they begin. Then none can begin.
func (c *carry) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for c.calls > 0 {
		c.idle.Wait()
	}
}

// run runs the function of a nested call, which enter has begun.
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
