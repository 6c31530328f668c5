package api

import (
	"context"
	"sync/atomic"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// handles keeps the last handles of contexts that were extended: a handle knows where its next message goes.
type handles [256]atomic.Pointer[contextHandle]

// contextHandle is the handle of a context.
type contextHandle struct {
	*lineage.Context
	run atomic.Pointer[extendedRun]
}

// extendedRun is a run of messages, and the number of messages before it, which never changes.
type extendedRun struct {
	run   structure.RunID
	depth uint64
}

// of returns the handle that is kept for a context, else a new one, which is kept. It may be called for nil.
func (h *handles) of(c *lineage.Context) *contextHandle {
	if kept := h.kept(c.ID()); kept != nil {
		return kept
	}
	opened := &contextHandle{Context: c}
	if h != nil {
		h.slot(c.ID()).Store(opened)
	}
	return opened
}

// kept returns the handle that is kept for a context, nil for none.
func (h *handles) kept(id lineage.ContextID) *contextHandle {
	if h == nil {
		return nil
	}
	if kept := h.slot(id).Load(); kept != nil && kept.ID() == id {
		return kept
	}
	return nil
}

func (h *handles) slot(id lineage.ContextID) *atomic.Pointer[contextHandle] { return &h[id[len(id)-1]] }

// position returns the position of a message that was just added.
func (h *contextHandle) position(ctx context.Context, store *lineage.Store, added lineage.SpanRef) (uint64, error) {
	if in := h.run.Load(); in != nil && in.run == added.Run {
		return in.depth + added.Seq, nil
	}
	n, err := store.Position(ctx, added)
	if err == nil {
		h.run.Store(&extendedRun{added.Run, n - added.Seq})
	}
	return n, err
}
