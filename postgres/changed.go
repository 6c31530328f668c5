package postgres

import "sync"

// changed wakes callers who wait for commits.
type changed struct {
	mu   sync.Mutex
	next chan struct{} // closed with the next commit; nil while nobody waits
}

func (c *changed) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
}

func (c *changed) wait() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = make(chan struct{})
	}
	return c.next
}
