// Package semaphore limits how many goroutines do something at the same time.
package semaphore

import "context"

// Semaphore is a number of slots. With one slot it is a lock.
type Semaphore struct{ taken chan struct{} }

// New returns a semaphore whose slots are free.
func New(slots int) Semaphore { return Semaphore{make(chan struct{}, slots)} }

// Size returns the number of slots.
func (s Semaphore) Size() int { return cap(s.taken) }

// Acquire takes a slot, and waits until one is free. It takes none for a context that has ended, and returns its cause.
func (s Semaphore) Acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case s.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// TryAcquire takes a slot if one is free, whatever the caller's context.
func (s Semaphore) TryAcquire() bool {
	select {
	case s.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

// Release frees a slot.
func (s Semaphore) Release() { <-s.taken }
