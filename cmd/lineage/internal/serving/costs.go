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
	mu      sync.Mutex
	threads map[lineage.ThreadID]string
	at      lineage.Cursor // the commit that they are as of
	looked  time.Time
	looks   bool
	ended   bool
	done    sync.WaitGroup
	stop    context.CancelFunc
}

// cost returns the cost of a conversation. With counts it reads the costs in the background, and returns nothing until it
// has them.
func (c *threadCosts) cost(id lineage.ThreadID, counts bool, read func(context.Context) (map[lineage.ThreadID]string, lineage.Cursor)) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looks && !c.ended && time.Since(c.looked) > costsAge && counts {
		ctx, stop := context.WithCancel(context.Background())
		c.looks, c.stop = true, stop
		c.done.Go(func() {
			defer stop()
			costs, at := read(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.looks, c.looked, c.at = false, time.Now(), at
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended && (c.looks || c.at != head && counts)
}

// end stops the computation.
func (c *threadCosts) end() {
	c.mu.Lock()
	c.ended = true
	if c.stop != nil {
		c.stop()
	}
	c.mu.Unlock()
	c.done.Wait()
}
