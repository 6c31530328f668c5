package entries

import (
	"sync"

	"github.com/lineage-store/lineage/internal/embedded/recent"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Cache holds the current state of recently used contexts and runs. Only the writer changes it, and the writer may
// read it without mu. Readers get copies, because entries are changed in place.
type Cache struct {
	mu       sync.Mutex
	ends     recent.Cache[structure.RunID, judge.End]
	contexts recent.Cache[structure.ContextID, liveContext]

	// For the writer only: times of last messages, and runs with forks.
	messages recent.Cache[structure.Home, int64]
	runs     recent.Cache[structure.RunID, structure.RunInfo]
	// digests are those of spans with forks, and those that were requested.
	digests *recent.Shared[structure.SpanRef, structure.Digest]
}

type liveContext struct {
	*backend.Context
	// shared is set while another goroutine produces index entries from the context. Meanwhile the context must not
	// be changed in place.
	shared bool
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{
		ends:     recent.ByID[structure.RunID, judge.End](),
		contexts: recent.ByID[structure.ContextID, liveContext](),
		messages: recent.Cache[structure.Home, int64]{Place: func(h structure.Home) uint64 { return recent.PlaceOfID(h.Thread) }},
		runs:     recent.ByID[structure.RunID, structure.RunInfo](),
		digests:  recent.NewShared[structure.SpanRef, structure.Digest](recent.PlaceOfSpan),
	}
}

// Context copies a context into to, if it is cached.
func (c *Cache) Context(id structure.ContextID, to *backend.Context) bool {
	c.mu.Lock()
	found, ok := c.contexts.Get(id)
	if ok {
		*to = *found.Context
	}
	c.mu.Unlock()
	return ok
}

// Digest returns the digest of a span, if it is cached.
func (c *Cache) Digest(r structure.SpanRef) (structure.Digest, bool) {
	if end, ok := c.end(r.Run); ok && end.Seq == r.Seq && r.Seq != 0 {
		return end.Digest, true
	}
	return c.digests.Get(r)
}

// SetDigest caches the digest of a span.
func (c *Cache) SetDigest(r structure.SpanRef, d structure.Digest) { c.digests.Set(r, d) }

// end returns the end of a run, if it is cached.
func (c *Cache) end(run structure.RunID) (judge.End, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ends.Get(run)
}

// keep returns a context of the cache and marks it as recently used. For the writer.
func (c *Cache) keep(id structure.ContextID) (*backend.Context, bool) {
	found, ok := c.contexts.First(id)
	if !ok {
		c.mu.Lock()
		found, ok = c.contexts.Keep(id)
		c.mu.Unlock()
	}
	return found.Context, ok
}

// add caches a context. For the writer.
func (c *Cache) add(added *backend.Context) {
	c.mu.Lock()
	c.contexts.Set(added.ID, liveContext{Context: added})
	c.mu.Unlock()
}

// move sets the tip of a context, if it is cached.
func (c *Cache) move(id structure.ContextID, to judge.Tip) {
	moved, ok := c.contexts.Get(id)
	if !ok {
		return
	}
	if moved.shared {
		own := *moved.Context
		moved = liveContext{Context: &own}
		c.contexts.Set(id, moved)
	}
	moved.Tip, moved.Moved, moved.MovedAt = to.Span, to.Commit, to.At
}

// Forget empties the cache. For the writer.
func (c *Cache) Forget() {
	c.ForgetCurrent()
	c.runs.Clear()
	c.digests.Clear()
}

// ForgetCurrent removes everything that later commits may have changed. For the writer.
func (c *Cache) ForgetCurrent() {
	c.mu.Lock()
	c.ends.Clear()
	c.contexts.Clear()
	c.messages.Clear()
	c.mu.Unlock()
}

// ForgetMessage removes the time of the last message of a home. For the writer.
func (c *Cache) ForgetMessage(home structure.Home) { c.messages.Forget(home) }
