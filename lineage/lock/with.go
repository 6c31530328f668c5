package lock

import (
	"context"
	"errors"
)

// With runs fn while it holds the lock on the file at path, and releases it when fn returns or
// panics. If the lock is held, With returns a [*HeldError] with the holder, at once or after
// opts.Wait.
//
// The context passed to fn is cancelled with the cause ErrLost if the lock is lost before fn
// returns; With then returns an error that matches ErrLost, even if fn returns nil.
//
// The context carries the lock: a nested With on the same file, under this or a derived context,
// runs its function at once under the lock already held. Nested calls do not exclude each other.
// The outer With releases the lock when all of them have returned. All other callers wait, in this
// process too. A context whose lock has ended no longer carries it.
func With(ctx context.Context, path string, opts Options, fn func(context.Context) error) (err error) {
	l := New(path, opts)
	if err := l.opts.validate(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c := enter(ctx, path); c != nil {
		return c.run(ctx, fn)
	}
	if err := l.acquireWithin(ctx); err != nil {
		return err
	}
	c := newCarry(ctx, l.held)
	held, cancel := l.Context(context.WithValue(ctx, carryKey{}, c))
	defer func() {
		cancel()
		c.leave()
		<-c.done
		released := l.Release()
		if released != nil && !(errors.Is(released, ErrLost) && errors.Is(err, ErrLost)) {
			err = errors.Join(err, released)
		}
	}()
	return fn(held)
}

// acquireWithin acquires the lock, waiting up to Options.Wait.
func (l *Lock) acquireWithin(ctx context.Context) error {
	switch {
	case l.opts.Wait < 0:
		return l.Acquire(ctx)
	case l.opts.Wait == 0:
		holder, err := l.attempt(ctx)
		if err == nil && holder != nil {
			return &HeldError{Path: l.path, Holder: holder}
		}
		return err
	}
	limited, cancel := context.WithTimeout(ctx, l.opts.Wait)
	defer cancel()
	err := l.Acquire(limited)
	var held *HeldError
	if ctx.Err() == nil && errors.As(err, &held) {
		return held
	}
	return err
}
