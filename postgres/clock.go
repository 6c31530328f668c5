package postgres

import (
	"sync"
	"time"
)

// clock is the time of the server: the clocks of processes differ.
type clock struct {
	mu     sync.Mutex
	server uint64 // seconds, as they were read
	at     time.Time
}

// set records the current time of the server.
func (c *clock) set(server uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server, c.at = server, time.Now().Round(0) // the monotonic clock stops while a machine sleeps
}

// now returns the time of the server, 0 while it is not known.
func (c *clock) now() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == 0 {
		return 0
	}
	return c.server + uint64(max(time.Since(c.at), 0)/time.Second)
}
