package keys

import (
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Counters are stored with the state of the index after every commit.
type Counters struct {
	Threads, Contexts, Branches, Checkpoints uint64
	Runs, Spans, Usages                      uint64
	Blocks, Chunks                           uint64
	Unique, Logical, Erased                  uint64
}

func (c *Counters) fields() []*uint64 {
	return []*uint64{
		&c.Threads, &c.Contexts, &c.Branches, &c.Checkpoints, &c.Runs, &c.Spans,
		&c.Usages, &c.Blocks, &c.Chunks, &c.Unique, &c.Logical, &c.Erased,
	}
}

// Values returns the counters in the order of the index.
func (c Counters) Values() (values index.Counts) {
	for i, f := range c.fields() {
		values[i] = *f
	}
	return values
}

// CountersOf is the inverse of Values.
func CountersOf(values index.Counts) (c Counters) {
	for i, f := range c.fields() {
		*f = values[i]
	}
	return c
}

// Stats returns the statistics of the port.
func (c Counters) Stats() backend.Stats {
	return backend.Stats{
		Threads: c.Threads, Contexts: c.Contexts, Branches: c.Branches, Checkpoints: c.Checkpoints,
		Runs: c.Runs, Spans: c.Spans, Usages: c.Usages, Blocks: c.Blocks, Chunks: c.Chunks,
		UniqueBytes: c.Unique, LogicalBytes: c.Logical,
	}
}

// Plus returns the counters after a commit.
func (c Counters) Plus(by *judge.Counts) Counters {
	return Counters{
		Threads: c.Threads + uint64(by.Threads), Contexts: c.Contexts + uint64(by.Contexts),
		Branches: c.Branches + uint64(by.Branches), Checkpoints: c.Checkpoints + uint64(by.Checkpoints),
		Runs: c.Runs + uint64(by.Runs), Spans: c.Spans + uint64(by.Spans), Usages: c.Usages + uint64(by.Usages),
		Blocks: c.Blocks + uint64(by.Blocks), Chunks: c.Chunks + uint64(by.Chunks),
		Unique: c.Unique + uint64(by.UniqueBytes), Logical: c.Logical + uint64(by.LogicalBytes), Erased: c.Erased + uint64(by.Erased),
	}
}

// Since returns the counters plus the difference between two other states. It combines changes that were made in
// parallel.
func (c Counters) Since(was, after Counters) Counters {
	to, from, now := c.fields(), was.fields(), after.fields()
	for i := range to {
		*to[i] += *now[i] - *from[i]
	}
	return c
}
