package write

import (
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/structure"
)

// contextLocks serialize appends to contexts that had conflicts, which saves retries. Each context has a lock
// of its own while there are writers. A lock is held during a sync, so contexts that shared one would wait
// for each other.
type contextLocks struct {
	shards [64]contextShard
}

type contextShard struct {
	wanted atomic.Int32 // how many have a lock of the shard or wait for it
	mu     sync.Mutex
	held   []*ContextLock
	free   *ContextLock // one that is used again
}

// ContextLock is the lock of a context.
type ContextLock struct {
	shard *contextShard
	id    structure.ContextID
	mu    sync.Mutex
	users int // who have it or wait for it
}

func (l *contextLocks) shard(id structure.ContextID) *contextShard {
	// The last byte differs even between ids that were made in sequence.
	return &l.shards[id[len(id)-1]%byte(len(l.shards))]
}

// wanted reports whether the lock of a context may be held or waited for.
func (l *contextLocks) wanted(id structure.ContextID) bool { return l.shard(id).wanted.Load() > 0 }

// lock takes the lock of a context.
func (l *contextLocks) lock(id structure.ContextID) *ContextLock {
	s := l.shard(id)
	s.wanted.Add(1)
	s.mu.Lock()
	c := s.find(id)
	c.users++
	s.mu.Unlock()
	c.mu.Lock()
	return c
}

func (s *contextShard) find(id structure.ContextID) *ContextLock {
	for _, c := range s.held {
		if c.id == id {
			return c
		}
	}
	c := s.free
	if s.free = nil; c == nil {
		c = &ContextLock{shard: s}
	}
	c.id = id
	s.held = append(s.held, c)
	return c
}

// Unlock releases the lock. It does nothing for nil.
func (c *ContextLock) Unlock() {
	if c == nil {
		return
	}
	c.mu.Unlock()
	s := c.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted.Add(-1)
	if c.users--; c.users > 0 {
		return
	}
	for i := range s.held {
		if s.held[i] == c {
			last := len(s.held) - 1
			s.held[i], s.held[last] = s.held[last], nil
			s.held = s.held[:last]
			break
		}
	}
	s.free = c
}
