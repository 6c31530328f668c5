package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
)

// A batch of several commits, while other processes write as well, ends before the server has synced it: the others would
// wait for that, too. Its commits are answered when a later synced write has made them durable. That is one write for all
// batches that ended before it began and wait for no other. It looks for the row of each of them: the server may have lost
// some since.

// manyCommits is the number of commits of a batch that is synced later. Tests make it smaller.
var manyCommits uint64 = 4

// mostFlushes is the number of synced writes at the same time, if there is another connection for batches. One more begins
// while there are fewer, so that commits do not wait for the end of one that began before them. The server syncs what ends
// together at once. Tests change it.
var mostFlushes = 3

// answering answers the commits of batches.
type answering struct {
	log    *log
	queue  queue           // for commits that the server lost
	closed context.Context // ends when the engine is closed

	mu      sync.Mutex
	waiting []*pending // in the order of their batches
	going   int        // synced writes
	ended   sync.WaitGroup
}

// answer answers the commits of a batch: those of full durability when they are durable, in the background.
func (a *answering) answer(batch []*pending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range batch {
		if p.err != nil || !p.full || p.receipt.Number <= p.cache.durable.at().Number {
			close(p.done)
			continue
		}
		a.waiting = append(a.waiting, p)
	}
	if len(a.waiting) > 0 && a.going < min(mostFlushes, a.log.flushing.Size()) {
		a.going++
		a.ended.Go(a.answerAll)
	}
}

// answerAll answers the commits that wait, until there are none.
func (a *answering) answerAll() {
	for batch := a.take(); len(batch) > 0; batch = a.take() {
		var heads []head // of batches
		index := make([]int, len(batch))
		for i, p := range batch {
			if len(heads) == 0 || p.head != heads[len(heads)-1] {
				heads = append(heads, p.head)
			}
			index[i] = len(heads) - 1
		}
		there, err := a.flushAll(heads)
		for i, p := range batch {
			switch {
			case err != nil:
				a.answerOne(p, err)
			case !there[index[i]]:
				a.answerOne(p, errDiverged)
			default:
				p.cache.durable.advance(p.head.Cursor)
				a.answerOne(p, nil)
			}
		}
	}
}

// take returns the commits that wait. Without any, the caller ends.
func (a *answering) take() []*pending {
	a.mu.Lock()
	defer a.mu.Unlock()
	batch := a.waiting
	if a.waiting = nil; len(batch) == 0 {
		a.going--
	}
	return batch
}

// flushAll makes rows durable, until the outcome is known or patience ends. See log.flushAll.
func (a *answering) flushAll(heads []head) (there []bool, err error) {
	begun := time.Now()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		there, err = a.log.flushAll(context.Background(), heads)
		if err == nil || !isTransient(err) && !mayHaveWritten(err) || time.Since(begun)+pause > patience {
			return there, explain(err)
		}
		time.Sleep(pause)
	}
}

// answerOne answers a commit after an attempt to make it durable. One that the server lost waits for another batch.
func (a *answering) answerOne(p *pending, err error) {
	if errors.Is(err, errDiverged) {
		p.receipt = backend.Receipt{}
		p.claimed.Store(false)
		select {
		case a.queue <- p:
			return
		case <-a.closed.Done():
			err = errClosed
		}
	}
	switch {
	case errors.Is(err, errClosed): // it was not applied
		p.err = err
	case err != nil:
		p.receipt, p.err = backend.Receipt{}, fmt.Errorf("%w: %w", backend.ErrUncertain, err)
	}
	close(p.done)
}
