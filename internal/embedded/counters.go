package embedded

import (
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
)

// counters are kept with the state of the index after every commit.
type counters struct {
	threads, contexts, branches, checkpoints uint64
	runs, spans, usages                      uint64
	blocks, chunks                           uint64
	unique, logical, erased                  uint64
}

func (c *counters) fields() []*uint64 {
	return []*uint64{
		&c.threads, &c.contexts, &c.branches, &c.checkpoints, &c.runs, &c.spans,
		&c.usages, &c.blocks, &c.chunks, &c.unique, &c.logical, &c.erased,
	}
}

// values returns the counters as the index keeps them.
func (c counters) values() (values index.Counts) {
	for i, f := range c.fields() {
		values[i] = *f
	}
	return values
}

func countersOf(values index.Counts) (c counters) {
	for i, f := range c.fields() {
		*f = values[i]
	}
	return c
}

func (c counters) stats() backend.Stats {
	return backend.Stats{
		Threads: c.threads, Contexts: c.contexts, Branches: c.branches, Checkpoints: c.checkpoints,
		Runs: c.runs, Spans: c.spans, Usages: c.usages, Blocks: c.blocks, Chunks: c.chunks,
		UniqueBytes: c.unique, LogicalBytes: c.logical,
	}
}

// since returns what counters become that have gone on from one state when that
// becomes another.
func (c counters) since(was, is counters) counters {
	to, from, now := c.fields(), was.fields(), is.fields()
	for i := range to {
		*to[i] += *now[i] - *from[i]
	}
	return c
}
