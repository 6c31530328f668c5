package sharing

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// The methods of backend.Reader that do not yield sequences.

func (e *Engine) Head(ctx context.Context) (backend.Cursor, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Cursor, error) { return r.Head(ctx) })
}

func (e *Engine) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.Thread, error) { return r.Thread(ctx, id) })
}

func (e *Engine) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return read(ctx, e, func(r backend.Reader) (time.Time, error) { return r.LastMessage(ctx, home) })
}

func (e *Engine) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Context, error) { return r.Context(ctx, id) })
}

func (e *Engine) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.Remnant, error) { return r.Remnant(ctx, id) })
}

func (e *Engine) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.Branch, error) { return r.Branch(ctx, thread, name) })
}

func (e *Engine) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.Checkpoint, error) { return r.Checkpoint(ctx, thread, name) })
}

func (e *Engine) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return read(ctx, e, func(r backend.Reader) (structure.RunInfo, error) { return r.Run(ctx, id) })
}

func (e *Engine) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return read(ctx, e, func(r backend.Reader) ([]structure.RunInfo, error) { return r.Ancestry(ctx, id, limit) })
}

func (e *Engine) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return read(ctx, e, func(r backend.Reader) (structure.SpanRef, error) { return r.Last(ctx, run) })
}

func (e *Engine) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return read(ctx, e, func(r backend.Reader) (structure.Digest, error) { return r.Digest(ctx, tip) })
}

func (e *Engine) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.SpanSet, error) { return r.SpanSet(ctx, id) })
}

func (e *Engine) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Value, error) { return r.Value(ctx, key) })
}

func (e *Engine) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return read(ctx, e, func(r backend.Reader) ([]bool, error) { return r.Has(ctx, ids) })
}

func (e *Engine) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return read(ctx, e, func(r backend.Reader) ([]*structure.Block, error) { return r.Blocks(ctx, ids) })
}

func (e *Engine) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	return read(ctx, e, func(r backend.Reader) ([][]byte, error) { return r.Chunks(ctx, keys) })
}

func (e *Engine) Stats(ctx context.Context) (backend.Stats, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Stats, error) { return r.Stats(ctx) })
}
