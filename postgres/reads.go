package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// readers are the methods of backend.Reader: of the latest state, or of the replica as it is.
type readers struct {
	engine *Engine
	recent bool // as the replica is
}

// Recent implements backend.Engine.
func (e *Engine) Recent() backend.Reader { return &readers{e, true} }

// Snapshot implements backend.Engine.
func (e *Engine) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	return read(ctx, &e.readers, func(replica *embedded.Engine) (backend.Snapshot, error) { return replica.Snapshot(ctx) })
}

// held does something with the replica while it is what the log has.
func (e *Engine) held(fn func(*embedded.Engine) error) error {
	e.reads.RLock()
	defer e.reads.RUnlock()
	switch {
	case e.closed.Load():
		return errClosed
	case e.replica == nil:
		return errNoReplica
	}
	return e.expired(fn(e.replica))
}

// errNoReplica is returned to a reader when the replica was dropped after it was brought up to
// the log.
var errNoReplica = fmt.Errorf("the replica was dropped: %w", backend.ErrExpired)

// expired says of a replica that was closed that it has expired, unless the engine was closed.
func (e *Engine) expired(err error) error {
	if errors.Is(err, backend.ErrClosed) && !e.closed.Load() {
		return fmt.Errorf("%w: %w", backend.ErrExpired, err)
	}
	return err
}

// read reads the replica, brought up to the log if that is wanted.
func read[T any](ctx context.Context, r *readers, fn func(*embedded.Engine) (T, error)) (result T, err error) {
	e := r.engine
	for range mostRetries {
		if !r.recent || e.known.Load() == nil {
			if err = e.fresh(ctx); err != nil {
				return result, err
			}
		}
		err = e.held(func(replica *embedded.Engine) (err error) {
			result, err = fn(replica)
			return err
		})
		if !errors.Is(err, backend.ErrExpired) {
			break
		}
	}
	return result, err
}

// readState is read for what a reader answers.
func readState[T any](ctx context.Context, r *readers, fn func(backend.Reader) (T, error)) (T, error) {
	return read(ctx, r, func(replica *embedded.Engine) (T, error) { return fn(replica) })
}

// sequence yields what is read from a snapshot.
func sequence[T any](ctx context.Context, r *readers, fn func(backend.Reader) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		s, err := read(ctx, r, func(replica *embedded.Engine) (backend.Snapshot, error) { return replica.Snapshot(ctx) })
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		defer s.Close()
		fn(s)(yield)
	}
}

// Head implements backend.Reader.
func (r *readers) Head(ctx context.Context) (backend.Cursor, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Cursor, error) { return v.Head(ctx) })
}

// Context implements backend.Reader.
func (r *readers) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Context, error) { return v.Context(ctx, id) })
}

// Thread implements backend.Reader.
func (r *readers) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.Thread, error) { return v.Thread(ctx, id) })
}

// Threads implements backend.Reader.
func (r *readers) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Thread, error] { return v.Threads(ctx, after) })
}

// ThreadsEnding implements backend.Reader.
func (r *readers) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Thread, error] { return v.ThreadsEnding(ctx, end) })
}

// Contexts implements backend.Reader.
func (r *readers) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[backend.Context, error] { return v.Contexts(ctx, thread, after) })
}

// LastMessage implements backend.Reader.
func (r *readers) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return readState(ctx, r, func(v backend.Reader) (time.Time, error) { return v.LastMessage(ctx, home) })
}

// ListThreads implements backend.Reader.
func (r *readers) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[backend.ThreadListing, error] { return v.ListThreads(ctx, q) })
}

// ContextsAlone implements backend.Reader.
func (r *readers) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[backend.Context, error] { return v.ContextsAlone(ctx, after) })
}

// Children implements backend.Reader.
func (r *readers) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[backend.Context, error] { return v.Children(ctx, parent, after) })
}

// Branch implements backend.Reader.
func (r *readers) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.Branch, error) { return v.Branch(ctx, thread, name) })
}

// Branches implements backend.Reader.
func (r *readers) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Branch, error] {
		return v.Branches(ctx, thread, prefix, after)
	})
}

// BranchesOf implements backend.Reader.
func (r *readers) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Branch, error] { return v.BranchesOf(ctx, thread, id) })
}

// Checkpoint implements backend.Reader.
func (r *readers) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.Checkpoint, error) { return v.Checkpoint(ctx, thread, name) })
}

// Checkpoints implements backend.Reader.
func (r *readers) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Checkpoint, error] {
		return v.Checkpoints(ctx, thread, after)
	})
}

// Run implements backend.Reader.
func (r *readers) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return readState(ctx, r, func(v backend.Reader) (structure.RunInfo, error) { return v.Run(ctx, id) })
}

// Ancestry implements backend.Reader.
func (r *readers) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return readState(ctx, r, func(v backend.Reader) ([]structure.RunInfo, error) { return v.Ancestry(ctx, id, limit) })
}

// Forks implements backend.Reader.
func (r *readers) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[structure.RunInfo, error] { return v.Forks(ctx, run) })
}

// ForksAt implements backend.Reader.
func (r *readers) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[structure.RunInfo, error] { return v.ForksAt(ctx, at) })
}

// Last implements backend.Reader.
func (r *readers) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return readState(ctx, r, func(v backend.Reader) (structure.SpanRef, error) { return v.Last(ctx, run) })
}

// Path implements backend.Reader.
func (r *readers) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*backend.Step, error] { return v.Path(ctx, tip, w, o) })
}

// Digest implements backend.Reader.
func (r *readers) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return readState(ctx, r, func(v backend.Reader) (structure.Digest, error) { return v.Digest(ctx, tip) })
}

// Find implements backend.Reader.
func (r *readers) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[backend.Found, error] { return v.Find(ctx, sourceID, thread, after) })
}

// RunsOf implements backend.Reader.
func (r *readers) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[structure.RunInfo, error] { return v.RunsOf(ctx, thread, after) })
}

// BranchesBySource implements backend.Reader.
func (r *readers) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Branch, error] {
		return v.BranchesBySource(ctx, sourceID, thread)
	})
}

// CheckpointsBySource implements backend.Reader.
func (r *readers) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Checkpoint, error] {
		return v.CheckpointsBySource(ctx, sourceID, thread)
	})
}

// Value implements backend.Reader.
func (r *readers) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Value, error) { return v.Value(ctx, key) })
}

// Values implements backend.Reader.
func (r *readers) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[backend.Value, error] { return v.Values(ctx, owner, prefix, after) })
}

// ValueHistory implements backend.Reader.
func (r *readers) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[backend.Value, error] { return v.ValueHistory(ctx, key) })
}

// ValueOwners implements backend.Reader.
func (r *readers) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[string, error] { return v.ValueOwners(ctx, scope, after) })
}

// SpanSet implements backend.Reader.
func (r *readers) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.SpanSet, error) { return v.SpanSet(ctx, id) })
}

// Alternatives implements backend.Reader.
func (r *readers) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[structure.SpanRef, error] { return v.Alternatives(ctx, id) })
}

// Summaries implements backend.Reader.
func (r *readers) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Summary, error] { return v.Summaries(ctx, id) })
}

// Reflog implements backend.Reader.
func (r *readers) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[*structure.Reflog, error] { return v.Reflog(ctx, id) })
}

// Has implements backend.Reader.
func (r *readers) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return readState(ctx, r, func(v backend.Reader) ([]bool, error) { return v.Has(ctx, ids) })
}

// Blocks implements backend.Reader.
func (r *readers) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return readState(ctx, r, func(v backend.Reader) ([]*structure.Block, error) { return v.Blocks(ctx, ids) })
}

// Chunks implements backend.Reader.
func (r *readers) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	return readState(ctx, r, func(v backend.Reader) ([][]byte, error) { return v.Chunks(ctx, keys) })
}

// Where implements backend.Reader.
func (r *readers) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return sequence(ctx, r, func(v backend.Reader) iter.Seq2[structure.UsageID, error] { return v.Where(ctx, id) })
}

// Stats implements backend.Reader.
func (r *readers) Stats(ctx context.Context) (backend.Stats, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Stats, error) { return v.Stats(ctx) })
}
