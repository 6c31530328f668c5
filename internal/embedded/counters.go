package embedded

import (
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/judge"
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

// plus returns what counters become by a commit.
func (c counters) plus(by *judge.Counts) counters {
	return counters{
		threads: c.threads + uint64(by.Threads), contexts: c.contexts + uint64(by.Contexts),
		branches: c.branches + uint64(by.Branches), checkpoints: c.checkpoints + uint64(by.Checkpoints),
		runs: c.runs + uint64(by.Runs), spans: c.spans + uint64(by.Spans), usages: c.usages + uint64(by.Usages),
		blocks: c.blocks + uint64(by.Blocks), chunks: c.chunks + uint64(by.Chunks),
		unique: c.unique + uint64(by.UniqueBytes), logical: c.logical + uint64(by.LogicalBytes), erased: c.erased + uint64(by.Erased),
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
