package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// readers implements backend.Reader for the latest state, or for the state of the replica. When the
// replica is dropped, sequences continue in the next one.
type readers struct {
	resume.Sequences
	engine *Engine
	recent bool // the state of the replica
}

func newReaders(e *Engine, recent bool) *readers {
	r := &readers{engine: e, recent: recent}
	r.Sequences.Open = r.open
	return r
}

// Recent implements backend.Engine.
func (e *Engine) Recent() backend.Reader { return newReaders(e, true) }

// Snapshot implements backend.Engine.
func (e *Engine) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	return read(ctx, e.readers, func(replica *embedded.Engine) (backend.Snapshot, error) { return replica.Snapshot(ctx) })
}

// held reads the replica while that is not ahead of the log.
func (e *Engine) held(fn func(*embedded.Engine) error) error {
	e.reads.RLock()
	defer e.reads.RUnlock()
	switch {
	case e.closed.Load():
		return errClosed
	case e.replica == nil || !e.whole:
		return errNoReplica
	}
	return e.expired(fn(e.replica))
}

// errNoReplica is returned to a reader if the replica was dropped after it caught up.
var errNoReplica = fmt.Errorf("the replica was dropped: %w", backend.ErrExpired)

// expired makes ErrExpired of ErrClosed, unless the engine was closed: its replica was.
func (e *Engine) expired(err error) error {
	if errors.Is(err, backend.ErrClosed) && !e.closed.Load() {
		return fmt.Errorf("%w: %w", backend.ErrExpired, err)
	}
	return err
}

// read reads the replica. For the latest state the replica catches up first.
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

// readState is read with a method of backend.Reader.
func readState[T any](ctx context.Context, r *readers, fn func(backend.Reader) (T, error)) (T, error) {
	return read(ctx, r, func(replica *embedded.Engine) (T, error) { return fn(replica) })
}

// open takes a snapshot for a sequence.
func (r *readers) open(ctx context.Context) (resume.Opened[backend.Reader], error) {
	s, err := read(ctx, r, func(replica *embedded.Engine) (backend.Snapshot, error) { return replica.Snapshot(ctx) })
	return resume.Opened[backend.Reader]{Reader: s, Interrupted: r.engine.dropped, Close: func() { _ = s.Close() }}, err
}

// dropped reports whether an error says that the replica was dropped, and the engine is not closed.
func (e *Engine) dropped(err error) bool {
	return errors.Is(err, backend.ErrExpired) && !e.closed.Load()
}

// Head implements backend.Reader.
func (r *readers) Head(ctx context.Context) (backend.Cursor, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Cursor, error) { return v.Head(ctx) })
}

// Context implements backend.Reader.
func (r *readers) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Context, error) { return v.Context(ctx, id) })
}

// Remnant implements backend.Reader.
func (r *readers) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.Remnant, error) { return v.Remnant(ctx, id) })
}

// Thread implements backend.Reader.
func (r *readers) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.Thread, error) { return v.Thread(ctx, id) })
}

// LastMessage implements backend.Reader.
func (r *readers) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return readState(ctx, r, func(v backend.Reader) (time.Time, error) { return v.LastMessage(ctx, home) })
}

// Branch implements backend.Reader.
func (r *readers) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.Branch, error) { return v.Branch(ctx, thread, name) })
}

// Checkpoint implements backend.Reader.
func (r *readers) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.Checkpoint, error) { return v.Checkpoint(ctx, thread, name) })
}

// Run implements backend.Reader.
func (r *readers) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return readState(ctx, r, func(v backend.Reader) (structure.RunInfo, error) { return v.Run(ctx, id) })
}

// Ancestry implements backend.Reader.
func (r *readers) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return readState(ctx, r, func(v backend.Reader) ([]structure.RunInfo, error) { return v.Ancestry(ctx, id, limit) })
}

// Last implements backend.Reader.
func (r *readers) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return readState(ctx, r, func(v backend.Reader) (structure.SpanRef, error) { return v.Last(ctx, run) })
}

// Digest implements backend.Reader.
func (r *readers) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return readState(ctx, r, func(v backend.Reader) (structure.Digest, error) { return v.Digest(ctx, tip) })
}

// Value implements backend.Reader.
func (r *readers) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Value, error) { return v.Value(ctx, key) })
}

// SpanSet implements backend.Reader.
func (r *readers) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return readState(ctx, r, func(v backend.Reader) (*structure.SpanSet, error) { return v.SpanSet(ctx, id) })
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

// Stats implements backend.Reader.
func (r *readers) Stats(ctx context.Context) (backend.Stats, error) {
	return readState(ctx, r, func(v backend.Reader) (backend.Stats, error) { return v.Stats(ctx) })
}
