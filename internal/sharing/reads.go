package sharing

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Head implements backend.Reader.
func (e *Engine) Head(ctx context.Context) (backend.Cursor, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Cursor, error) { return r.Head(ctx) })
}

// Thread implements backend.Reader.
func (e *Engine) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.Thread, error) { return r.Thread(ctx, id) })
}

// Threads implements backend.Reader.
func (e *Engine) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return paged(ctx, e, after, func(h *handle, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
		return h.Threads(ctx, after)
	}, func(last *structure.Thread) structure.ThreadID { return last.ID })
}

// ThreadsEnding implements backend.Reader.
func (e *Engine) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return ordered(ctx, e, func(h *handle) iter.Seq2[*structure.Thread, error] { return h.ThreadsEnding(ctx, end) }, func(v, last *structure.Thread) bool { return v.ID.Compare(last.ID) > 0 })
}

// LastMessage implements backend.Reader.
func (e *Engine) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return read(ctx, e, func(r backend.Reader) (time.Time, error) { return r.LastMessage(ctx, home) })
}

// ListThreads implements backend.Reader.
func (e *Engine) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return paged(ctx, e, q, func(h *handle, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
		return h.ListThreads(ctx, q)
	}, func(last backend.ThreadListing) backend.ThreadQuery {
		q := q
		q.After = last.Token()
		return q
	})
}

// Context implements backend.Reader.
func (e *Engine) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Context, error) { return r.Context(ctx, id) })
}

// Contexts implements backend.Reader.
func (e *Engine) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return paged(ctx, e, after, func(h *handle, after structure.ContextID) iter.Seq2[backend.Context, error] {
		return h.Contexts(ctx, thread, after)
	}, func(last backend.Context) structure.ContextID { return last.ID })
}

// ContextsAlone implements backend.Reader.
func (e *Engine) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return paged(ctx, e, after, func(h *handle, after structure.ContextID) iter.Seq2[backend.Context, error] {
		return h.ContextsAlone(ctx, after)
	}, func(last backend.Context) structure.ContextID { return last.ID })
}

// Children implements backend.Reader.
func (e *Engine) Children(ctx context.Context, parent structure.ContextID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return paged(ctx, e, after, func(h *handle, after structure.ContextID) iter.Seq2[backend.Context, error] {
		return h.Children(ctx, parent, after)
	}, func(last backend.Context) structure.ContextID { return last.ID })
}

// Branch implements backend.Reader.
func (e *Engine) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.Branch, error) { return r.Branch(ctx, thread, name) })
}

// Branches implements backend.Reader.
func (e *Engine) Branches(ctx context.Context, thread structure.ThreadID, prefix string, after string) iter.Seq2[*structure.Branch, error] {
	return paged(ctx, e, after, func(h *handle, after string) iter.Seq2[*structure.Branch, error] {
		return h.Branches(ctx, thread, prefix, after)
	}, func(last *structure.Branch) string { return last.Name })
}

// BranchesOf implements backend.Reader.
func (e *Engine) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return ordered(ctx, e, func(h *handle) iter.Seq2[*structure.Branch, error] { return h.BranchesOf(ctx, thread, id) }, func(v, last *structure.Branch) bool { return v.Name > last.Name })
}

// BranchesBySource implements backend.Reader.
func (e *Engine) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return ordered(ctx, e, func(h *handle) iter.Seq2[*structure.Branch, error] { return h.BranchesBySource(ctx, sourceID, thread) }, func(v, last *structure.Branch) bool { return v.Thread.Compare(last.Thread) > 0 })
}

// Checkpoint implements backend.Reader.
func (e *Engine) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.Checkpoint, error) { return r.Checkpoint(ctx, thread, name) })
}

// Checkpoints implements backend.Reader.
func (e *Engine) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return paged(ctx, e, after, func(h *handle, after string) iter.Seq2[*structure.Checkpoint, error] {
		return h.Checkpoints(ctx, thread, after)
	}, func(last *structure.Checkpoint) string { return last.Name })
}

// CheckpointsBySource implements backend.Reader.
func (e *Engine) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return ordered(ctx, e, func(h *handle) iter.Seq2[*structure.Checkpoint, error] {
		return h.CheckpointsBySource(ctx, sourceID, thread)
	}, func(v, last *structure.Checkpoint) bool { return v.Thread.Compare(last.Thread) > 0 })
}

// Find implements backend.Reader.
func (e *Engine) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return paged(ctx, e, after, func(h *handle, after backend.Found) iter.Seq2[backend.Found, error] {
		return h.Find(ctx, sourceID, thread, after)
	}, func(last backend.Found) backend.Found { return last })
}

// Run implements backend.Reader.
func (e *Engine) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return read(ctx, e, func(r backend.Reader) (structure.RunInfo, error) { return r.Run(ctx, id) })
}

// Ancestry implements backend.Reader.
func (e *Engine) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return read(ctx, e, func(r backend.Reader) ([]structure.RunInfo, error) { return r.Ancestry(ctx, id, limit) })
}

// RunsOf implements backend.Reader.
func (e *Engine) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return paged(ctx, e, after, func(h *handle, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
		return h.RunsOf(ctx, thread, after)
	}, func(last structure.RunInfo) structure.RunID { return last.ID })
}

// Forks implements backend.Reader.
func (e *Engine) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return ordered(ctx, e, func(h *handle) iter.Seq2[structure.RunInfo, error] { return h.Forks(ctx, run) }, func(v, last structure.RunInfo) bool {
		return cmp.Or(cmp.Compare(v.Parent.Seq, last.Parent.Seq), v.ID.Compare(last.ID)) > 0
	})
}

// ForksAt implements backend.Reader.
func (e *Engine) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return ordered(ctx, e, func(h *handle) iter.Seq2[structure.RunInfo, error] { return h.ForksAt(ctx, at) }, func(v, last structure.RunInfo) bool { return v.ID.Compare(last.ID) > 0 })
}

// Last implements backend.Reader.
func (e *Engine) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return read(ctx, e, func(r backend.Reader) (structure.SpanRef, error) { return r.Last(ctx, run) })
}

// Path implements backend.Reader.
func (e *Engine) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return paged(ctx, e, w, func(h *handle, w structure.Window) iter.Seq2[*backend.Step, error] { return h.Path(ctx, tip, w, o) }, func(last *backend.Step) structure.Window {
		return structure.Window{From: last.Position + 1, To: w.To}
	})
}

// Digest implements backend.Reader.
func (e *Engine) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return read(ctx, e, func(r backend.Reader) (structure.Digest, error) { return r.Digest(ctx, tip) })
}

// SpanSet implements backend.Reader.
func (e *Engine) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return read(ctx, e, func(r backend.Reader) (*structure.SpanSet, error) { return r.SpanSet(ctx, id) })
}

// Alternatives implements backend.Reader.
func (e *Engine) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return distinct(ctx, e, func(h *handle) iter.Seq2[structure.SpanRef, error] { return h.Alternatives(ctx, id) }, func(s structure.SpanRef) structure.SpanRef { return s })
}

// Summaries implements backend.Reader.
func (e *Engine) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return distinct(ctx, e, func(h *handle) iter.Seq2[*structure.Summary, error] { return h.Summaries(ctx, id) }, func(s *structure.Summary) structure.SummaryID { return s.ID })
}

// Reflog implements backend.Reader.
func (e *Engine) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return counted(ctx, e, func(h *handle) iter.Seq2[*structure.Reflog, error] { return h.Reflog(ctx, id) })
}

// Value implements backend.Reader.
func (e *Engine) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Value, error) { return r.Value(ctx, key) })
}

// Values implements backend.Reader.
func (e *Engine) Values(ctx context.Context, owner structure.Owner, prefix string, after string) iter.Seq2[backend.Value, error] {
	return paged(ctx, e, after, func(h *handle, after string) iter.Seq2[backend.Value, error] {
		return h.Values(ctx, owner, prefix, after)
	}, func(last backend.Value) string { return last.Key })
}

// ValueHistory implements backend.Reader.
func (e *Engine) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return ordered(ctx, e, func(h *handle) iter.Seq2[backend.Value, error] { return h.ValueHistory(ctx, key) }, func(v, last backend.Value) bool { return v.Commit < last.Commit })
}

// ValueOwners implements backend.Reader.
func (e *Engine) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return paged(ctx, e, after, func(h *handle, after string) iter.Seq2[string, error] { return h.ValueOwners(ctx, scope, after) }, func(last string) string { return last })
}

// Has implements backend.Reader.
func (e *Engine) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return read(ctx, e, func(r backend.Reader) ([]bool, error) { return r.Has(ctx, ids) })
}

// Blocks implements backend.Reader.
func (e *Engine) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return read(ctx, e, func(r backend.Reader) ([]*structure.Block, error) { return r.Blocks(ctx, ids) })
}

// Chunks implements backend.Reader.
func (e *Engine) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	return read(ctx, e, func(r backend.Reader) ([][]byte, error) { return r.Chunks(ctx, keys) })
}

// Where implements backend.Reader.
func (e *Engine) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return distinct(ctx, e, func(h *handle) iter.Seq2[structure.UsageID, error] { return h.Where(ctx, id) }, func(u structure.UsageID) structure.UsageID { return u })
}

// Stats implements backend.Reader.
func (e *Engine) Stats(ctx context.Context) (backend.Stats, error) {
	return read(ctx, e, func(r backend.Reader) (backend.Stats, error) { return r.Stats(ctx) })
}
