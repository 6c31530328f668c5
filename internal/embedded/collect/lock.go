package collect

import "context"

// Lock excludes long operations from each other. Who waits for it looks at its context.
type Lock struct{ held chan struct{} }

// NewLock returns a lock that is free.
func NewLock() Lock { return Lock{make(chan struct{}, 1)} }

// Take waits until the lock is free, and takes it. It returns the cause of a context that ended before.
func (l Lock) Take(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case l.held <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Free frees the lock.
func (l Lock) Free() { <-l.held }
