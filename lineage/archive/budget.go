package archive

import "sync"

// budget limits the memory of conversations that wait. A conversation larger than the limit waits until no other
// does.
type budget struct {
	mu          sync.Mutex
	free        *sync.Cond
	used, limit int64
	closed      bool
}

func newBudget(limit int64) *budget {
	b := &budget{limit: limit}
	b.free = sync.NewCond(&b.mu)
	return b
}

func (b *budget) take(n int64) {
	b.mu.Lock()
	for b.used > 0 && b.used+n > b.limit && !b.closed {
		b.free.Wait()
	}
	b.used += n
	b.mu.Unlock()
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
	b.free.Signal()
}

func (b *budget) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.free.Broadcast()
}
