package embedded

import (
	"sync"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// current caches the current state of contexts that were used recently, and the ends of runs.
// It is changed with the lock on writing held; the holder of that lock may read it without
// mu. Others get copies, because entries are changed in place.
type current struct {
	mu       sync.Mutex
	ends     recent[structure.RunID, judge.End]
	contexts recent[structure.ContextID, liveContext]
	messages recent[structure.Home, int64] // times of last messages; for who has the lock on writing
}

type liveContext struct {
	*backend.Context
	// shared is set when another goroutine makes index entries from the context later. It
	// must not be changed in place.
	shared bool
}

func newCurrent() current {
	return current{
		ends:     recentByID[structure.RunID, judge.End](),
		contexts: recentByID[structure.ContextID, liveContext](),
		messages: recent[structure.Home, int64]{place: func(h structure.Home) uint64 { return placeOfID(h.Thread) }},
	}
}

// context copies a context to to, if it is cached.
func (c *current) context(id structure.ContextID, to *backend.Context) bool {
	c.mu.Lock()
	is, ok := c.contexts.get(id)
	if ok {
		*to = *is.Context
	}
	c.mu.Unlock()
	return ok
}

// end returns where a run ends, if that is known.
func (c *current) end(run structure.RunID) (judge.End, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends.get(run)
}

// keep returns a context that is going to be used again. The lock on writing is held.
func (c *current) keep(id structure.ContextID) (*backend.Context, bool) {
	is, ok := c.contexts.first(id)
	if !ok {
		c.mu.Lock()
		is, ok = c.contexts.keep(id)
		c.mu.Unlock()
	}
	return is.Context, ok
}

// add caches a context that was looked up. The lock on writing is held.
func (c *current) add(is *backend.Context) {
	c.mu.Lock()
	c.contexts.set(is.ID, liveContext{Context: is})
	c.mu.Unlock()
}

// take applies the effects of a commit. The entries of the shared context are made later. mu
// is held.
func (c *current) take(f *judge.Effects, shared *backend.Context) {
	for run, end := range f.Ends.All() {
		c.ends.set(run, end)
	}
	for _, run := range f.Cuts {
		c.ends.forget(run)
	}
	for id, change := range f.Contexts.All() {
		if change.Stated == nil {
			c.contexts.forget(id)
		} else {
			c.contexts.set(id, liveContext{change.Stated, change.Stated == shared})
		}
	}
	for id, at := range f.Tips.All() {
		c.move(id, at)
	}
}

// move sets the tip of a context, if it is cached.
func (c *current) move(id structure.ContextID, to judge.Tip) {
	is, ok := c.contexts.get(id)
	if !ok {
		return
	}
	if is.shared {
		own := *is.Context
		is = liveContext{Context: &own}
		c.contexts.set(id, is)
	}
	is.Tip, is.Moved, is.MovedAt = to.Span, to.Commit, to.At
}

// forget empties the cache.
func (c *current) forget() {
	c.mu.Lock()
	c.ends.clear()
	c.contexts.clear()
	c.messages.clear()
	c.mu.Unlock()
}
