package embedded

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// The engine's own reads see the latest state: each takes a snapshot for as long
// as it runs. Reading a context, the commonest of all, does without one.

func read[T any](e *Engine, fn func(view) (T, error)) (T, error) {
	if err := e.begin(); err != nil {
		var none T
		return none, err
	}
	defer e.end()
	v := e.now()
	defer v.release()
	return fn(v)
}

func sequence[T any](e *Engine, fn func(view) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := e.begin(); err != nil {
			var none T
			yield(none, err)
			return
		}
		defer e.end()
		v := e.now()
		defer v.release()
		fn(v)(yield)
	}
}

// Head implements backend.Reader.
func (e *Engine) Head(context.Context) (uint64, error) {
	if err := e.begin(); err != nil {
		return 0, err
	}
	defer e.end()
	return e.index.Number(), nil
}

// Context implements backend.Reader.
func (e *Engine) Context(ctx context.Context, id structure.ContextID) (c backend.Context, err error) {
	if !e.closed.Load() && e.current.context(id, &c) { // no file is needed
		return c, nil
	}
	return read(e, func(v view) (backend.Context, error) { return v.Context(ctx, id) })
}

// Thread implements backend.Reader.
func (e *Engine) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return read(e, func(v view) (*structure.Thread, error) { return v.Thread(ctx, id) })
}

// Threads implements backend.Reader.
func (e *Engine) Threads(ctx context.Context) iter.Seq2[*structure.Thread, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Thread, error] { return v.Threads(ctx) })
}

// Contexts implements backend.Reader.
func (e *Engine) Contexts(ctx context.Context, thread structure.ThreadID) iter.Seq2[backend.Context, error] {
	return sequence(e, func(v view) iter.Seq2[backend.Context, error] { return v.Contexts(ctx, thread) })
}

// LastMoved implements backend.Reader.
func (e *Engine) LastMoved(ctx context.Context, thread structure.ThreadID) (backend.Context, error) {
	return read(e, func(v view) (backend.Context, error) { return v.LastMoved(ctx, thread) })
}

// Children implements backend.Reader.
func (e *Engine) Children(ctx context.Context, parent structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(e, func(v view) iter.Seq2[backend.Context, error] { return v.Children(ctx, parent) })
}

// Branch implements backend.Reader.
func (e *Engine) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return read(e, func(v view) (*structure.Branch, error) { return v.Branch(ctx, thread, name) })
}

// Branches implements backend.Reader.
func (e *Engine) Branches(ctx context.Context, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Branch, error] { return v.Branches(ctx, thread) })
}

// BranchesNamed implements backend.Reader.
func (e *Engine) BranchesNamed(ctx context.Context, thread structure.ThreadID, prefix string) iter.Seq2[*structure.Branch, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Branch, error] { return v.BranchesNamed(ctx, thread, prefix) })
}

// BranchesOf implements backend.Reader.
func (e *Engine) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Branch, error] { return v.BranchesOf(ctx, thread, id) })
}

// BranchesBySource implements backend.Reader.
func (e *Engine) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Branch, error] { return v.BranchesBySource(ctx, sourceID, thread) })
}

// CheckpointsBySource implements backend.Reader.
func (e *Engine) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Checkpoint, error] {
		return v.CheckpointsBySource(ctx, sourceID, thread)
	})
}

// Checkpoint implements backend.Reader.
func (e *Engine) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return read(e, func(v view) (*structure.Checkpoint, error) { return v.Checkpoint(ctx, thread, name) })
}

// Checkpoints implements backend.Reader.
func (e *Engine) Checkpoints(ctx context.Context, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Checkpoint, error] { return v.Checkpoints(ctx, thread) })
}

// Run implements backend.Reader.
func (e *Engine) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return read(e, func(v view) (structure.RunInfo, error) { return v.Run(ctx, id) })
}

// Forks implements backend.Reader.
func (e *Engine) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(e, func(v view) iter.Seq2[structure.RunInfo, error] { return v.Forks(ctx, run) })
}

// ForksAt implements backend.Reader.
func (e *Engine) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return sequence(e, func(v view) iter.Seq2[structure.RunInfo, error] { return v.ForksAt(ctx, at) })
}

// Last implements backend.Reader.
func (e *Engine) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return read(e, func(v view) (structure.SpanRef, error) { return v.Last(ctx, run) })
}

// Path implements backend.Reader.
func (e *Engine) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return sequence(e, func(v view) iter.Seq2[*backend.Step, error] { return v.Path(ctx, tip, w, o) })
}

// Digest implements backend.Reader.
func (e *Engine) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return read(e, func(v view) (structure.Digest, error) { return v.Digest(ctx, tip) })
}

// Find implements backend.Reader.
func (e *Engine) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return sequence(e, func(v view) iter.Seq2[backend.Found, error] { return v.Find(ctx, sourceID, thread, after) })
}

// RunsOf implements backend.Reader.
func (e *Engine) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(e, func(v view) iter.Seq2[structure.RunInfo, error] { return v.RunsOf(ctx, thread, after) })
}

// SpanSet implements backend.Reader.
func (e *Engine) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return read(e, func(v view) (*structure.SpanSet, error) { return v.SpanSet(ctx, id) })
}

// Alternatives implements backend.Reader.
func (e *Engine) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return sequence(e, func(v view) iter.Seq2[structure.SpanRef, error] { return v.Alternatives(ctx, id) })
}

// Summaries implements backend.Reader.
func (e *Engine) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Summary, error] { return v.Summaries(ctx, id) })
}

// Reflog implements backend.Reader.
func (e *Engine) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return sequence(e, func(v view) iter.Seq2[*structure.Reflog, error] { return v.Reflog(ctx, id) })
}

// Has implements backend.Reader.
func (e *Engine) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return read(e, func(v view) ([]bool, error) { return v.Has(ctx, ids) })
}

// Blocks implements backend.Reader.
func (e *Engine) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return read(e, func(v view) ([]*structure.Block, error) { return v.Blocks(ctx, ids) })
}

// Chunk implements backend.Reader.
func (e *Engine) Chunk(ctx context.Context, k content.Key) ([]byte, error) {
	return read(e, func(v view) ([]byte, error) { return v.Chunk(ctx, k) })
}

// Where implements backend.Reader.
func (e *Engine) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return sequence(e, func(v view) iter.Seq2[structure.UsageID, error] { return v.Where(ctx, id) })
}

// Stats implements backend.Reader.
func (e *Engine) Stats(ctx context.Context) (backend.Stats, error) {
	return read(e, func(v view) (backend.Stats, error) { return v.Stats(ctx) })
}
