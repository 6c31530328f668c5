package embedded

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/lineage-store/lineage/internal/yielding"
	"github.com/lineage-store/lineage/lineage/backend"
)

// commitQueue groups commits of full durability that share a sync. The first commit of a group leads it. When the
// previous group is durable, the leader writes all commits of the group until no more join, and syncs once. So a
// commit waits once, not first for a lock and then for a sync. Nothing is written during a sync, because the write
// would have to wait for it.
type commitQueue struct {
	write func([]*submission) (last uint64) // writes commits, and returns the last number
	sync  func(last uint64) error

	mu        sync.Mutex
	gathering *commitGroup // new commits join it; nil when the next commit begins a group
	syncing   *commitGroup // written but not durable yet
	free      *commitGroup // for reuse
}

// commitGroup is a list of commits that share a sync.
type commitGroup struct {
	waiting []*submission // not written yet
	written []*submission
	done    chan struct{} // closed when the group is durable; nil without waiters
}

// busy reports whether a commit of full durability is pending.
func (q *commitQueue) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.gathering != nil || q.syncing != nil
}

// giveWay returns a function that background work calls after every step. The function yields the processor while
// commits of full durability are pending, because their goroutines wake up after each sync and need it briefly. It
// does not yield to other commits, which also depend on packing and folding.
func (q *commitQueue) giveWay() func() {
	var y yielding.Yielder
	return func() {
		if q.busy() {
			y.Yield()
		}
	}
}

// wait returns a channel that is closed when the group is durable. The queue's lock is held.
func (g *commitGroup) wait() <-chan struct{} {
	if g.done == nil {
		g.done = make(chan struct{})
	}
	return g.done
}

// commit commits a submission durably, together with others.
func (q *commitQueue) commit(t *submission) {
	q.mu.Lock()
	if g := q.gathering; g != nil {
		g.waiting = append(g.waiting, t)
		done := g.wait()
		q.mu.Unlock()
		<-done
		return
	}
	g := q.free
	if q.free = nil; g == nil {
		g = &commitGroup{}
	}
	g.waiting = append(g.waiting, t)
	q.gathering = g
	if q.syncing != nil {
		before := q.syncing.wait()
		q.mu.Unlock()
		<-before
	} else {
		q.mu.Unlock()
	}
	q.lead(g)
}

// lead writes a group and makes it durable.
func (q *commitQueue) lead(g *commitGroup) {
	var last uint64
	for {
		for range 2 {
			runtime.Gosched() // let others join first
		}
		q.mu.Lock()
		from := len(g.written)
		g.written = append(g.written, g.waiting...)
		clear(g.waiting)
		g.waiting = g.waiting[:0]
		if len(g.written) == from {
			q.gathering, q.syncing = nil, g
			q.mu.Unlock()
			break
		}
		q.mu.Unlock()
		last = max(last, q.write(g.written[from:]))
	}
	if err := q.sync(last); err != nil {
		for _, t := range g.written {
			if t.err == nil {
				t.err = fmt.Errorf("commit %d: %w: %w", t.at.Number, backend.ErrUncertain, err)
			}
		}
	}
	q.mu.Lock()
	q.syncing = nil
	done := g.done
	clear(g.written)
	g.written, g.done = g.written[:0], nil
	q.free = g
	q.mu.Unlock()
	if done != nil {
		close(done)
	}
}
