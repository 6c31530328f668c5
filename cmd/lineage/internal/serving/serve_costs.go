package serving

import (
	"context"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/usage"
	"github.com/lineage-store/lineage/structure"
)

// costsAge is the age at which the costs of conversations are computed again.
const costsAge = 30 * time.Second

// threadCosts caches the cost of each conversation. A report about all of them takes too long for a list.
type threadCosts struct {
	mu     sync.Mutex
	of     map[lineage.ThreadID]string
	looked time.Time
	looks  bool
	ended  bool
	done   sync.WaitGroup
	stop   context.CancelFunc
}

// cost is page.Options.Cost. It returns nothing before someone has asked for the usage of the store, which reads all
// of it.
func (p *pageIndexes) cost(id lineage.ThreadID) string {
	c := &p.threads
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.looks && !c.ended && time.Since(c.looked) > costsAge && usage.Exists(p.dir) {
		ctx, stop := context.WithCancel(context.Background())
		c.looks, c.stop = true, stop
		c.done.Go(func() {
			defer stop()
			of := p.costsByThread(ctx)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.looks, c.looked = false, time.Now()
			if of != nil {
				c.of = of
			}
		})
	}
	return c.of[id]
}

// costsByThread returns the cost of conversations. It returns nil if that cannot be computed, as in a damaged store.
func (p *pageIndexes) costsByThread(ctx context.Context) map[lineage.ThreadID]string {
	index, err := p.openCosts(ctx)
	if err != nil {
		return nil
	}
	report, err := index.Report(ctx, usage.Query{By: []usage.By{usage.Thread}})
	if err != nil {
		return nil
	}
	of := make(map[lineage.ThreadID]string)
	for i := range report.Rows {
		row := &report.Rows[i]
		figures := row.Figures.Record()
		if id, err := structure.ParseID[lineage.ThreadID](row.Keys[0]); err == nil {
			of[id] = figures.Money()
		}
	}
	return of
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
