package write

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Outside is the engine of a store for handles outside of transactions. It refuses every call with
// the context of a transaction on the same store: such a call would not be part of the transaction.
type Outside struct{ backend.Engine }

// Distant implements backend.Distant.
func (o Outside) Distant() bool { return backend.IsDistant(o.Engine) }

// transaction is the value in the context of a transaction.
type transaction struct {
	engine backend.Engine
	ended  atomic.Bool
	outer  *transaction // on another store, or nil
}

type transactionKey struct{}

// WithTransaction returns the context of a transaction on an engine. end makes it an ordinary context again.
func WithTransaction(ctx context.Context, on backend.Engine) (inside context.Context, end func()) {
	outer, _ := ctx.Value(transactionKey{}).(*transaction)
	t := &transaction{engine: on, outer: outer}
	return context.WithValue(ctx, transactionKey{}, t), func() { t.ended.Store(true) }
}

// Check returns an error if ctx belongs to a transaction on the same store.
func (e Outside) Check(ctx context.Context) error {
	t, _ := ctx.Value(transactionKey{}).(*transaction)
	for ; t != nil; t = t.outer {
		if !t.ended.Load() && Same(t.engine, e.Engine) {
			return fmt.Errorf("call on a handle from outside of the transaction of its context: %w", backend.ErrInvalid)
		}
	}
	return nil
}

// Inner unwraps Outside. It returns other engines as they are.
func Inner(engine backend.Engine) backend.Engine {
	if e, ok := engine.(Outside); ok {
		return e.Engine
	}
	return engine
}

// Same reports whether two engines are of the same store.
func Same(a, b backend.Engine) bool {
	a, b = Inner(a), Inner(b)
	if a == b {
		return true
	}
	shared, ok := a.(interface{ SameStore(backend.Engine) bool })
	return ok && shared.SameStore(b)
}

func call0[R any](ctx context.Context, e Outside, call func(context.Context) (R, error)) (R, error) {
	if err := e.Check(ctx); err != nil {
		return *new(R), err
	}
	return call(ctx)
}

func call1[A, R any](ctx context.Context, e Outside, call func(context.Context, A) (R, error), a A) (R, error) {
	if err := e.Check(ctx); err != nil {
		return *new(R), err
	}
	return call(ctx, a)
}

func call2[A, B, R any](ctx context.Context, e Outside, call func(context.Context, A, B) (R, error), a A, b B) (R, error) {
	if err := e.Check(ctx); err != nil {
		return *new(R), err
	}
	return call(ctx, a, b)
}

func list[T any](ctx context.Context, e Outside, elements iter.Seq2[T, error]) iter.Seq2[T, error] {
	if err := e.Check(ctx); err != nil {
		return func(yield func(T, error) bool) { yield(*new(T), err) }
	}
	return elements
}

func (e Outside) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	return call2(ctx, e, e.Engine.Apply, c, o)
}

func (e Outside) Outcome(ctx context.Context, o backend.Once) (backend.Receipt, error) {
	return call1(ctx, e, e.Engine.Outcome, o)
}

func (e Outside) Forget(ctx context.Context, session [16]byte) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	return e.Engine.Forget(ctx, session)
}

func (e Outside) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	return call1(ctx, e, e.Engine.Upload, chunks)
}

func (e Outside) Sync(ctx context.Context) error {
	if err := e.Check(ctx); err != nil {
		return err
	}
	return e.Engine.Sync(ctx)
}

func (e Outside) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return list(ctx, e, e.Engine.Verify(ctx, o))
}

func (e Outside) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	return call0(ctx, e, e.Engine.Snapshot)
}

func (e Outside) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	return list(ctx, e, e.Engine.Feed(ctx, after))
}

func (e Outside) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	return call1(ctx, e, e.Engine.Wait, after)
}

func (e Outside) Head(ctx context.Context) (backend.Cursor, error) {
	return call0(ctx, e, e.Engine.Head)
}

func (e Outside) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return call1(ctx, e, e.Engine.Thread, id)
}

func (e Outside) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return list(ctx, e, e.Engine.Threads(ctx, after))
}

func (e Outside) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return list(ctx, e, e.Engine.ThreadsEnding(ctx, end))
}

func (e Outside) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return call1(ctx, e, e.Engine.Context, id)
}

func (e Outside) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return call1(ctx, e, e.Engine.Remnant, id)
}

func (e Outside) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return list(ctx, e, e.Engine.Contexts(ctx, thread, after))
}

func (e Outside) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return list(ctx, e, e.Engine.ContextsAlone(ctx, after))
}

func (e Outside) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return list(ctx, e, e.Engine.Children(ctx, parent, after))
}

func (e Outside) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return call2(ctx, e, e.Engine.Branch, thread, name)
}

func (e Outside) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return list(ctx, e, e.Engine.Branches(ctx, thread, prefix, after))
}

func (e Outside) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return list(ctx, e, e.Engine.BranchesOf(ctx, thread, id))
}

func (e Outside) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return call2(ctx, e, e.Engine.Checkpoint, thread, name)
}

func (e Outside) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return list(ctx, e, e.Engine.Checkpoints(ctx, thread, after))
}

func (e Outside) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return call1(ctx, e, e.Engine.Run, id)
}

func (e Outside) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return call2(ctx, e, e.Engine.Ancestry, id, limit)
}

func (e Outside) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return list(ctx, e, e.Engine.Forks(ctx, run))
}

func (e Outside) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return list(ctx, e, e.Engine.ForksAt(ctx, at))
}

func (e Outside) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return call1(ctx, e, e.Engine.Last, run)
}

func (e Outside) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return list(ctx, e, e.Engine.Path(ctx, tip, w, o))
}

func (e Outside) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return call1(ctx, e, e.Engine.Digest, tip)
}

func (e Outside) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return call1(ctx, e, e.Engine.SpanSet, id)
}

func (e Outside) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return list(ctx, e, e.Engine.Alternatives(ctx, id))
}

func (e Outside) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return list(ctx, e, e.Engine.Summaries(ctx, id))
}

func (e Outside) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return list(ctx, e, e.Engine.Reflog(ctx, id))
}

func (e Outside) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return call1(ctx, e, e.Engine.Has, ids)
}

func (e Outside) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return call1(ctx, e, e.Engine.Blocks, ids)
}

func (e Outside) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	return call1(ctx, e, e.Engine.Chunks, keys)
}

func (e Outside) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return list(ctx, e, e.Engine.Where(ctx, id))
}

func (e Outside) Stats(ctx context.Context) (backend.Stats, error) {
	return call0(ctx, e, e.Engine.Stats)
}

func (e Outside) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return list(ctx, e, e.Engine.BranchesBySource(ctx, sourceID, thread))
}

func (e Outside) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return list(ctx, e, e.Engine.CheckpointsBySource(ctx, sourceID, thread))
}

func (e Outside) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return list(ctx, e, e.Engine.Find(ctx, sourceID, thread, after))
}

func (e Outside) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return list(ctx, e, e.Engine.RunsOf(ctx, thread, after))
}

func (e Outside) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return call1(ctx, e, e.Engine.LastMessage, home)
}

func (e Outside) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return list(ctx, e, e.Engine.ListThreads(ctx, q))
}

func (e Outside) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return call1(ctx, e, e.Engine.Value, key)
}

func (e Outside) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return list(ctx, e, e.Engine.Values(ctx, owner, prefix, after))
}

func (e Outside) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return list(ctx, e, e.Engine.ValueHistory(ctx, key))
}

func (e Outside) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return list(ctx, e, e.Engine.ValueOwners(ctx, scope, after))
}

func (e Outside) Recent() backend.Reader {
	if recent := e.Engine.Recent(); recent != backend.Reader(e.Engine) {
		return recent // what is built on it is committed through e
	}
	return e
}
