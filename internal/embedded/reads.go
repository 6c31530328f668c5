package embedded

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Head implements backend.Reader.
func (r *reads) Head(ctx context.Context) (backend.Cursor, error) {
	return answer(r, func(v view) (backend.Cursor, error) { return v.Head(ctx) })
}

// Context implements backend.Reader.
func (r *reads) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return answer(r, func(v view) (backend.Context, error) { return v.Context(ctx, id) })
}

// Remnant implements backend.Reader.
func (r *reads) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return answer(r, func(v view) (*structure.Remnant, error) { return v.Remnant(ctx, id) })
}

// Thread implements backend.Reader.
func (r *reads) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return answer(r, func(v view) (*structure.Thread, error) { return v.Thread(ctx, id) })
}

// Threads implements backend.Reader.
func (r *reads) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Thread, error] { return v.Threads(ctx, after) })
}

// ThreadsEnding implements backend.Reader.
func (r *reads) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Thread, error] { return v.ThreadsEnding(ctx, end) })
}

// Contexts implements backend.Reader.
func (r *reads) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(r, func(v view) iter.Seq2[backend.Context, error] { return v.Contexts(ctx, thread, after) })
}

// LastMessage implements backend.Reader.
func (r *reads) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return answer(r, func(v view) (time.Time, error) { return v.LastMessage(ctx, home) })
}

// ListThreads implements backend.Reader.
func (r *reads) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return sequence(r, func(v view) iter.Seq2[backend.ThreadListing, error] { return v.ListThreads(ctx, q) })
}

// ContextsAlone implements backend.Reader.
func (r *reads) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(r, func(v view) iter.Seq2[backend.Context, error] { return v.ContextsAlone(ctx, after) })
}

// Children implements backend.Reader.
func (r *reads) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(r, func(v view) iter.Seq2[backend.Context, error] { return v.Children(ctx, parent, after) })
}

// Branch implements backend.Reader.
func (r *reads) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return answer(r, func(v view) (*structure.Branch, error) { return v.Branch(ctx, thread, name) })
}

// Branches implements backend.Reader.
func (r *reads) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Branch, error] { return v.Branches(ctx, thread, prefix, after) })
}

// BranchesOf implements backend.Reader.
func (r *reads) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Branch, error] { return v.BranchesOf(ctx, thread, id) })
}

// Checkpoint implements backend.Reader.
func (r *reads) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return answer(r, func(v view) (*structure.Checkpoint, error) { return v.Checkpoint(ctx, thread, name) })
}

// Checkpoints implements backend.Reader.
func (r *reads) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Checkpoint, error] { return v.Checkpoints(ctx, thread, after) })
}

// Run implements backend.Reader.
func (r *reads) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return answer(r, func(v view) (structure.RunInfo, error) { return v.Run(ctx, id) })
}

// Ancestry implements backend.Reader.
func (r *reads) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return answer(r, func(v view) ([]structure.RunInfo, error) { return v.Ancestry(ctx, id, limit) })
}

// Forks implements backend.Reader.
func (r *reads) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(r, func(v view) iter.Seq2[structure.RunInfo, error] { return v.Forks(ctx, run) })
}

// ForksAt implements backend.Reader.
func (r *reads) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return sequence(r, func(v view) iter.Seq2[structure.RunInfo, error] { return v.ForksAt(ctx, at) })
}

// Last implements backend.Reader.
func (r *reads) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return answer(r, func(v view) (structure.SpanRef, error) { return v.Last(ctx, run) })
}

// Path implements backend.Reader.
func (r *reads) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return sequence(r, func(v view) iter.Seq2[*backend.Step, error] { return v.Path(ctx, tip, w, o) })
}

// Digest implements backend.Reader.
func (r *reads) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return answer(r, func(v view) (structure.Digest, error) { return v.Digest(ctx, tip) })
}

// Find implements backend.Reader.
func (r *reads) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return sequence(r, func(v view) iter.Seq2[backend.Found, error] { return v.Find(ctx, sourceID, thread, after) })
}

// RunsOf implements backend.Reader.
func (r *reads) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(r, func(v view) iter.Seq2[structure.RunInfo, error] { return v.RunsOf(ctx, thread, after) })
}

// BranchesBySource implements backend.Reader.
func (r *reads) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Branch, error] { return v.BranchesBySource(ctx, sourceID, thread) })
}

// CheckpointsBySource implements backend.Reader.
func (r *reads) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Checkpoint, error] {
		return v.CheckpointsBySource(ctx, sourceID, thread)
	})
}

// Value implements backend.Reader.
func (r *reads) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return answer(r, func(v view) (backend.Value, error) { return v.Value(ctx, key) })
}

// Values implements backend.Reader.
func (r *reads) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return sequence(r, func(v view) iter.Seq2[backend.Value, error] { return v.Values(ctx, owner, prefix, after) })
}

// ValueHistory implements backend.Reader.
func (r *reads) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return sequence(r, func(v view) iter.Seq2[backend.Value, error] { return v.ValueHistory(ctx, key) })
}

// ValueOwners implements backend.Reader.
func (r *reads) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return sequence(r, func(v view) iter.Seq2[string, error] { return v.ValueOwners(ctx, scope, after) })
}

// SpanSet implements backend.Reader.
func (r *reads) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return answer(r, func(v view) (*structure.SpanSet, error) { return v.SpanSet(ctx, id) })
}

// Alternatives implements backend.Reader.
func (r *reads) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return sequence(r, func(v view) iter.Seq2[structure.SpanRef, error] { return v.Alternatives(ctx, id) })
}

// Summaries implements backend.Reader.
func (r *reads) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Summary, error] { return v.Summaries(ctx, id) })
}

// Reflog implements backend.Reader.
func (r *reads) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return sequence(r, func(v view) iter.Seq2[*structure.Reflog, error] { return v.Reflog(ctx, id) })
}

// Has implements backend.Reader.
func (r *reads) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return answer(r, func(v view) ([]bool, error) { return v.Has(ctx, ids) })
}

// Blocks implements backend.Reader.
func (r *reads) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return answer(r, func(v view) ([]*structure.Block, error) { return v.Blocks(ctx, ids) })
}

// Chunks implements backend.Reader.
func (r *reads) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	return answer(r, func(v view) ([][]byte, error) { return v.Chunks(ctx, keys) })
}

// Where implements backend.Reader.
func (r *reads) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return sequence(r, func(v view) iter.Seq2[structure.UsageID, error] { return v.Where(ctx, id) })
}

// Stats implements backend.Reader.
func (r *reads) Stats(ctx context.Context) (backend.Stats, error) {
	return answer(r, func(v view) (backend.Stats, error) { return v.Stats(ctx) })
}

// Recent implements backend.Engine.
func (e *Engine) Recent() backend.Reader { return e }

// Head implements backend.Reader.
func (e *Engine) Head(context.Context) (backend.Cursor, error) {
	if err := e.begin(); err != nil {
		return backend.Cursor{}, err
	}
	defer e.end()
	return read.CursorOf(e.index.State()), nil
}

// Context implements backend.Reader. It is the most frequent read, and usually served from
// the cache.
func (e *Engine) Context(ctx context.Context, id structure.ContextID) (c backend.Context, err error) {
	if !e.closed.Load() && e.cache.Context(id, &c) { // no file is needed
		return c, nil
	}
	return e.reads.Context(ctx, id)
}

// snapshot is a view that the caller closes.
type snapshot struct{ reads }

// Snapshot implements backend.Engine.
func (e *Engine) Snapshot(context.Context) (backend.Snapshot, error) {
	h, err := e.holds.take(&e.store)
	if err != nil {
		return nil, err
	}
	return &snapshot{reads{store: &e.store, holds: &e.holds, fixed: h}}, nil
}

// Close implements backend.Snapshot.
func (s *snapshot) Close() error {
	s.fixed.release(errReleased)
	return nil
}
