package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

// A turn of several commits, while other processes write as well, ends before the server has synced it: the others would
// wait for that, too. Its commits are answered when a later synced write has made them durable. That is one write for all
// turns that ended before it began.

// manyCommits is the number of commits of a turn that is synced later. Tests make it smaller.
var manyCommits uint64 = 4

// turnDone are the commits of a turn that wait to be durable, and the state that they made.
type turnDone struct {
	cache *cache
	head  head
	full  []*pending
}

// answering answers the commits of turns in the background.
type answering struct {
	mu      sync.Mutex
	waiting []turnDone
	going   bool
	ended   sync.WaitGroup
}

// answer answers the commits of a turn: those of full durability when they are durable. The turn is held.
func (e *Engine) answer(batch []*pending) {
	done := turnDone{cache: e.cache.Load(), head: e.head}
	for _, p := range batch {
		if p.err == nil && p.full && p.receipt.Number > done.cache.durable.at().Number {
			done.full = append(done.full, p)
		} else {
			close(p.done)
		}
	}
	if len(done.full) == 0 {
		return
	}
	a := &e.answering
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting = append(a.waiting, done); !a.going {
		a.going = true
		a.ended.Go(e.answerAll)
	}
}

// answerAll answers the turns that wait, until there are none.
func (e *Engine) answerAll() {
	a := &e.answering
	for {
		a.mu.Lock()
		turns := a.waiting
		a.waiting, a.going = nil, len(turns) > 0
		a.mu.Unlock()
		if len(turns) == 0 {
			return
		}
		last := turns[len(turns)-1]
		err := e.flush(context.Background(), last.cache, last.head)
		for _, t := range turns {
			if errors.Is(err, errDiverged) && t.head != last.head { // an earlier one may be there
				e.answerTurn(t, e.flush(context.Background(), t.cache, t.head))
			} else {
				e.answerTurn(t, err)
			}
		}
	}
}

// answerTurn answers the commits of a turn after an attempt to make them durable. Those that the server lost wait for
// another turn.
func (e *Engine) answerTurn(t turnDone, err error) {
	for _, p := range t.full {
		if errors.Is(err, errDiverged) {
			p.receipt = backend.Receipt{}
			p.taken.Store(false)
			select {
			case e.queue <- p:
				continue
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
}
