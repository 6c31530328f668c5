package embedded

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// liveContexts remembers contexts used lately, as they are now. Readers get copies, so
// that a commit that moves a tip changes what is here in place. Only who has the lock on
// writing changes anything: they may read what own and keep return without a lock.
type liveContexts struct {
	*recent[structure.ContextID, *liveContext]
}

type liveContext struct {
	backend.Context
	// shared says that its entries are made from it, by another goroutine and at some
	// time: it must stay as it was stated. That is so before it is put here.
	shared bool
}

func newLiveContexts() liveContexts {
	return liveContexts{newRecentByID[structure.ContextID, *liveContext]()}
}

// copy puts a copy of a context where to points, if it is there.
func (l liveContexts) copy(id structure.ContextID, to *backend.Context) bool {
	l.mu.Lock()
	is, ok := l.own(id)
	if ok {
		*to = is.Context
	}
	l.mu.Unlock()
	return ok
}

// move has a context, found here or elsewhere, stand at a tip.
func (l liveContexts) move(c *liveContext, to tip) {
	if is, ok := l.own(c.ID); !ok || is != c || c.shared {
		c = c.at(to)
		l.set(c.ID, c)
		return
	}
	l.mu.Lock()
	c.stand(to)
	l.mu.Unlock()
}

func (c *liveContext) stand(at tip) { c.Tip, c.Moved, c.MovedAt = at.span, at.commit, at.at }

// at returns a copy that stands at a tip.
func (c *liveContext) at(t tip) *liveContext {
	moved := &liveContext{Context: c.Context}
	moved.stand(t)
	return moved
}
