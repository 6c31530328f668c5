package serving

import (
	"context"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// costsAge is the age at which the costs of conversations are computed again.
const costsAge = 30 * time.Second

// threadCosts caches the cost of each conversation. A report about all of them takes too long for a list.
type threadCosts struct {
	background
	mu      sync.Mutex
	threads map[lineage.ThreadID]string
	at      lineage.Cursor // the commit that they are as of
	looked  time.Time
}

// cost returns the cost of a conversation. With counts it reads the costs in the background, and returns nothing until it
// has them.
func (c *threadCosts) cost(id lineage.ThreadID, counts bool, read func(context.Context) (map[lineage.ThreadID]string, lineage.Cursor)) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) > costsAge && counts {
		c.start(func(ctx context.Context) {
			costs, at := read(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.looked, c.at = time.Now(), at
			if costs != nil {
				c.threads = costs
			}
		})
	}
	return c.threads[id]
}

// pending reports whether the costs are computed now, or the next call of cost after costsAge computes them for later
// commits.
func (c *threadCosts) pending(counts bool, head lineage.Cursor) bool {
	running, ended := c.state()
	c.mu.Lock()
	defer c.mu.Unlock()
	return !ended && (running || c.at != head && counts)
}
