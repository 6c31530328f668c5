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
func (l *commitQueue) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gathering != nil || l.syncing != nil
}

// giveWay returns a function that background work calls after every step. The function yields the processor while
// commits of full durability are pending, because their goroutines wake up after each sync and need it briefly. It
// does not yield to other commits, which also depend on packing and folding.
func (e *Engine) giveWay() func() {
	var y yielding.Yielder
	return func() {
		if e.queue.busy() {
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

// commitTogether commits a submission durably, together with others.
func (e *Engine) commitTogether(t *submission) {
	l := &e.queue
	l.mu.Lock()
	if g := l.gathering; g != nil {
		g.waiting = append(g.waiting, t)
		done := g.wait()
		l.mu.Unlock()
		<-done
		return
	}
	g := l.free
	if l.free = nil; g == nil {
		g = &commitGroup{}
	}
	g.waiting = append(g.waiting, t)
	l.gathering = g
	if l.syncing != nil {
		before := l.syncing.wait()
		l.mu.Unlock()
		<-before
	} else {
		l.mu.Unlock()
	}
	e.lead(g)
}

// lead writes a group and makes it durable.
func (e *Engine) lead(g *commitGroup) {
	l := &e.queue
	var last uint64
	for {
		for range 2 {
			runtime.Gosched() // let others join first
		}
		l.mu.Lock()
		from := len(g.written)
		g.written = append(g.written, g.waiting...)
		clear(g.waiting)
		g.waiting = g.waiting[:0]
		if len(g.written) == from {
			l.gathering, l.syncing = nil, g
			l.mu.Unlock()
			break
		}
		l.mu.Unlock()
		e.write.Lock()
		for _, t := range g.written[from:] {
			if e.commit(t); t.err == nil {
				last = max(last, t.at.Number)
			}
		}
		e.write.Unlock()
	}
	if err := e.journal.Sync(last); err != nil {
		for _, t := range g.written {
			if t.err == nil {
				t.err = fmt.Errorf("commit %d: %w: %w", t.at.Number, backend.ErrUncertain, err)
			}
		}
	}
	l.mu.Lock()
	l.syncing = nil
	done := g.done
	clear(g.written)
	g.written, g.done = g.written[:0], nil
	l.free = g
	l.mu.Unlock()
	if done != nil {
		close(done)
	}
}
