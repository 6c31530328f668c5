package embedded

import (
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// current remembers of what was used lately how it is now: contexts, and where runs end.
// So only commits change it, and whoever has the lock on writing may read it without mu.
// Others get copies: what is here is changed in place.
type current struct {
	mu       sync.Mutex
	ends     recent[structure.RunID, runEnd]
	contexts recent[structure.ContextID, *liveContext]
	movers   recent[structure.ThreadID, structure.ContextID] // see mover
}

// runEnd is where a run ends and the digest of the history up to there.
type runEnd struct {
	seq    uint64
	digest structure.Digest
}

type liveContext struct {
	backend.Context
	// shared says that its entries are made from it, by another goroutine and at some
	// time: it must stay as it was stated. That is so before it is put here.
	shared bool
}

func newCurrent() current {
	return current{
		ends:     recentByID[structure.RunID, runEnd](),
		contexts: recentByID[structure.ContextID, *liveContext](),
		movers:   recentByID[structure.ThreadID, structure.ContextID](),
	}
}

// context puts a copy of a context where to points, if it is there.
func (c *current) context(id structure.ContextID, to *backend.Context) bool {
	c.mu.Lock()
	is, ok := c.contexts.get(id)
	if ok {
		*to = is.Context
	}
	c.mu.Unlock()
	return ok
}

// end returns where a run ends, if that is known.
func (c *current) end(run structure.RunID) (runEnd, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends.get(run)
}

// keep returns a context that is going to be used again, for who has the lock on writing.
func (c *current) keep(id structure.ContextID) (*liveContext, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contexts.keep(id)
}

// take takes over what a commit changed. mu is held.
func (c *current) take(b *builder) {
	b.ends.each(c.ends.set)
	b.movers.each(func(thread structure.ThreadID, last mover) {
		if last.gone {
			c.movers.forget(thread)
		} else {
			c.movers.set(thread, last.context)
		}
	})
	for _, run := range b.cuts {
		c.ends.forget(run)
	}
	if b.moved.context != nil { // before the others: a later record may have stated it, too
		c.move(b.moved.context, b.moved.to)
	}
	b.contexts.each(func(id structure.ContextID, is *liveContext) {
		if is == nil {
			c.contexts.forget(id)
		} else {
			c.contexts.set(id, is)
		}
	})
}

// move has a context, found here or elsewhere, stand at a tip.
func (c *current) move(moved *liveContext, to tip) {
	if is, ok := c.contexts.get(moved.ID); ok && is == moved && !moved.shared {
		moved.stand(to)
	} else {
		c.contexts.set(moved.ID, moved.at(to))
	}
}

// forget makes everything be looked up anew.
func (c *current) forget() {
	c.mu.Lock()
	c.ends.clear()
	c.contexts.clear()
	c.movers.clear()
	c.mu.Unlock()
}

func (c *liveContext) stand(at tip) { c.Tip, c.Moved, c.MovedAt = at.span, at.commit, at.at }

// at returns a copy that stands at a tip.
func (c *liveContext) at(t tip) *liveContext {
	moved := &liveContext{Context: c.Context}
	moved.stand(t)
	return moved
}
