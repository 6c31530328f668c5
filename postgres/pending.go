package postgres

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// pending is a commit that waits to be written.
type pending struct {
	ctx    context.Context
	commit *structure.Commit
	o      backend.Options
	full   bool // it asks for full durability

	prepared judge.Preparation // the commit without what is known
	begun    bool              // the ids of its content were checked
	reads    []judge.Key       // what judging may read
	whole    bool              // reads has whole trees, as after a collection

	claimed atomic.Bool   // by the batch, or by a caller who no longer waits
	done    chan struct{} // closed when the outcome is known
	receipt backend.Receipt
	err     error
	// Without an error, the cache in which the batch was judged, and the state after the batch.
	cache *cache
	head  head
}

// begin checks the ids of the commit's content, once.
func (p *pending) begin() error {
	if p.begun {
		return nil
	}
	p.begun = true
	return p.prepared.Begin(p.commit)
}

// keys returns what judging the commit may read.
func (p *pending) keys(whole bool) []judge.Key {
	if p.reads == nil || p.whole != whole {
		p.reads, p.whole = judge.Keys(judge.Case{Commit: p.commit, WholeTrees: whole}, p.o), whole
	}
	return p.reads
}

// mostGathered is the largest number of commits in a row.
const mostGathered = 256

// queue has the commits that wait for a batch.
type queue chan *pending

// gather adds the waiting commits to a batch. Callers who were just answered may have another commit, so they run first.
func (q queue) gather(batch []*pending) []*pending {
	for range 2 {
		runtime.Gosched()
		batch = q.addTo(batch)
	}
	return batch
}

// addTo adds the waiting commits to a batch, as many as fit into a row.
func (q queue) addTo(batch []*pending) []*pending {
	for len(batch) < mostGathered {
		select {
		case p := <-q:
			batch = append(batch, p)
		default:
			return batch
		}
	}
	return batch
}

// claim removes the commits whose callers no longer wait, and claims the others.
func claim(batch []*pending) []*pending {
	return slices.DeleteFunc(batch, func(p *pending) bool { return !p.claimed.CompareAndSwap(false, true) })
}

// fail makes an error the outcome of commits.
func fail(batch []*pending, err error) {
	for _, p := range batch {
		p.receipt, p.err = backend.Receipt{}, err
	}
}
