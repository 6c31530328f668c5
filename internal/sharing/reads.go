package sharing

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Head implements backend.Reader.
func (e *Engine) Head(ctx context.Context) (backend.Cursor, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Head(ctx); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (backend.Cursor, error) { return h.Head(ctx) })
}

// Thread implements backend.Reader.
func (e *Engine) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Thread(ctx, id); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (*structure.Thread, error) { return h.Thread(ctx, id) })
}

// LastMessage implements backend.Reader.
func (e *Engine) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.LastMessage(ctx, home); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (time.Time, error) { return h.LastMessage(ctx, home) })
}

// Context implements backend.Reader.
func (e *Engine) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Context(ctx, id); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (backend.Context, error) { return h.Context(ctx, id) })
}

// Branch implements backend.Reader.
func (e *Engine) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Branch(ctx, thread, name); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (*structure.Branch, error) { return h.Branch(ctx, thread, name) })
}

// Checkpoint implements backend.Reader.
func (e *Engine) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Checkpoint(ctx, thread, name); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (*structure.Checkpoint, error) { return h.Checkpoint(ctx, thread, name) })
}

// Run implements backend.Reader.
func (e *Engine) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Run(ctx, id); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (structure.RunInfo, error) { return h.Run(ctx, id) })
}

// Ancestry implements backend.Reader.
func (e *Engine) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Ancestry(ctx, id, limit); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) ([]structure.RunInfo, error) { return h.Ancestry(ctx, id, limit) })
}

// Last implements backend.Reader.
func (e *Engine) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Last(ctx, run); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (structure.SpanRef, error) { return h.Last(ctx, run) })
}

// Digest implements backend.Reader.
func (e *Engine) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Digest(ctx, tip); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (structure.Digest, error) { return h.Digest(ctx, tip) })
}

// SpanSet implements backend.Reader.
func (e *Engine) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.SpanSet(ctx, id); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (*structure.SpanSet, error) { return h.SpanSet(ctx, id) })
}

// Value implements backend.Reader.
func (e *Engine) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Value(ctx, key); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (backend.Value, error) { return h.Value(ctx, key) })
}

// Has implements backend.Reader.
func (e *Engine) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Has(ctx, ids); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) ([]bool, error) { return h.Has(ctx, ids) })
}

// Blocks implements backend.Reader.
func (e *Engine) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Blocks(ctx, ids); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) ([]*structure.Block, error) { return h.Blocks(ctx, ids) })
}

// Chunks implements backend.Reader.
func (e *Engine) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Chunks(ctx, keys); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) ([][]byte, error) { return h.Chunks(ctx, keys) })
}

// Stats implements backend.Reader.
func (e *Engine) Stats(ctx context.Context) (backend.Stats, error) {
	if own := e.owner.Load(); own != nil {
		if v, err := own.Stats(ctx); !e.gaveUp(own, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (backend.Stats, error) { return h.Stats(ctx) })
}
