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

// answering answers the commits of batches in the background.
type answering struct {
	mu      sync.Mutex
	waiting []*pending // in the order of their batches
	going   int        // synced writes
	ended   sync.WaitGroup
}

// answer answers the commits of a batch: those of full durability when they are durable. writing is held.
func (e *Engine) answer(batch []*pending) {
	a := &e.answering
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range batch {
		if p.err != nil || !p.full || p.receipt.Number <= p.cache.durable.at().Number {
			close(p.done)
			continue
		}
		a.waiting = append(a.waiting, p)
	}
	if len(a.waiting) > 0 && a.going < min(mostFlushes, cap(e.log.flushing)) {
		a.going++
		a.ended.Go(e.answerAll)
	}
}

// answerAll answers the commits that wait, until there are none.
func (e *Engine) answerAll() {
	a := &e.answering
	for {
		a.mu.Lock()
		batch := a.waiting
		a.waiting = nil
		if len(batch) == 0 {
			a.going--
		}
		a.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		var heads []head // of batches
		of := make([]int, len(batch))
		for i, p := range batch {
			if len(heads) == 0 || p.head != heads[len(heads)-1] {
				heads = append(heads, p.head)
			}
			of[i] = len(heads) - 1
		}
		there, err := e.flushAll(heads)
		for i, p := range batch {
			switch {
			case err != nil:
				e.answerOne(p, err)
			case !there[of[i]]:
				e.answerOne(p, errDiverged)
			default:
				p.cache.durable.advance(p.head.Cursor)
				e.answerOne(p, nil)
			}
		}
	}
}

// flushAll makes rows durable, until the outcome is known or patience ends. See log.flushAll.
func (e *Engine) flushAll(heads []head) (there []bool, err error) {
	begun := time.Now()
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		there, err = e.log.flushAll(context.Background(), heads)
		if err == nil || !isTransient(err) && !mayHaveWritten(err) || time.Since(begun)+pause > patience {
			return there, explain(err)
		}
		time.Sleep(pause)
	}
}

// answerOne answers a commit after an attempt to make it durable. One that the server lost waits for another batch.
func (e *Engine) answerOne(p *pending, err error) {
	if errors.Is(err, errDiverged) {
		p.receipt = backend.Receipt{}
		p.claimed.Store(false)
		select {
		case e.queue <- p:
			return
		case <-e.ctx.Done():
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
