package embedded

import (
	"sync/atomic"
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
