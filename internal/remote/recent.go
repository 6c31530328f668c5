package remote

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxRecent limits the contexts that a client keeps.
const maxRecent = 1024

// Recent implements backend.Engine.
func (c *Client) Recent() backend.Reader { return &c.recent }

// Context implements backend.Reader.
func (r *recent) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	r.mu.Lock()
	c, known := r.contexts[id]
	r.mu.Unlock()
	if known && !r.closed.Load() {
		return c, nil
	}
	return r.Client.Context(ctx, id)
}

func (r *recent) remember(contexts []backend.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.contexts == nil || len(r.contexts)+len(contexts) > maxRecent {
		r.contexts = make(map[structure.ContextID]backend.Context)
	}
	for _, c := range contexts {
		r.contexts[c.ID] = c
	}
}

// forget drops contexts after a failed commit, because they may have moved.
func (r *recent) forget(tips []backend.Expect) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, expected := range tips {
		delete(r.contexts, expected.Context)
	}
}
