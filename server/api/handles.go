package api

import (
	"sync/atomic"

	"github.com/lineage-store/lineage/lineage"
)

// handles keeps the last handles of contexts that were extended: a handle knows where its next message goes.
type handles [256]atomic.Pointer[lineage.Context]

// of returns the handle that is kept for a context, else the given one, which is kept. It may be called for nil.
func (h *handles) of(c *lineage.Context) *lineage.Context {
	if h == nil {
		return c
	}
	id := c.ID()
	slot := &h[id[len(id)-1]]
	if kept := slot.Load(); kept != nil && kept.ID() == id {
		return kept
	}
	slot.Store(c)
	return c
}
