package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// reader asks the server: for the latest state, or for that of a snapshot.
type reader struct {
	client *Client
	on     uint64       // the number of a snapshot; 0 for the latest state
	ended  *atomic.Bool // of a snapshot: it is closed
}

// fault returns the error of a request as a reader of this kind reports it.
func (r *reader) fault(err error, begun bool) error {
	gone := errors.Is(err, ErrDisconnected) || errors.Is(err, ErrMoved) && r.on != 0 || errors.Is(err, backend.ErrClosed) && r.client.closed.Load()
	if gone && (r.on != 0 || begun) {
		return fmt.Errorf("%w: %w", backend.ErrExpired, err)
	}
	return err
}

func (r *reader) alive() error {
	if r.on != 0 && r.ended.Load() {
		return fmt.Errorf("snapshot: %w", backend.ErrExpired)
	}
	return nil
}

// ask calls a method.
func (c call[A, R]) ask(ctx context.Context, r *reader, args A) (result R, err error) {
	return c.report(ctx, r, args, nil)
}

// report is ask for a method that reports progress.
func (c call[A, R]) report(ctx context.Context, r *reader, args A, progress func(done, total int64)) (result R, err error) {
	if err := r.alive(); err != nil {
		return result, err
	}
	a := r.client.newAsk(ctx, c.code, r.on)
	a.progress = progress
	c.args(a.body, &args)
	w, err := r.client.request(ctx, a)
	if err != nil {
		return result, r.fault(err, false)
	}
	return c.read(w)
}

func (c call[A, R]) read(w *wire) (result R, err error) {
	c.result(w, &result)
	if err := w.end(); err != nil {
		var none R
		return none, fmt.Errorf("answer to %s: %w", c.name, err)
	}
	return result, nil
}

// all calls a method that yields elements.
func (s sequence[A, E]) all(ctx context.Context, r *reader, args A) iter.Seq2[E, error] {
	return s.report(ctx, r, args, nil)
}

// report is all for a method that reports progress.
func (s sequence[A, E]) report(ctx context.Context, r *reader, args A, progress func(done, total int64)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		if err := r.alive(); err != nil {
			yield(none, err)
			return
		}
		c := r.client
		a := c.newAsk(ctx, s.code, r.on)
		s.args(a.body, &args)
		var id uint64 // of the sequence, while the server keeps it
		defer func() {
			if id != 0 {
				c.cancel(id)
			}
		}()
		for begun := false; ; begun = true {
			a.progress = progress
			w, err := c.request(ctx, a)
			if err != nil {
				yield(none, r.fault(err, begun))
				return
			}
			end := w.take(1, "end")
			switch {
			case len(end) == 1 && end[0] != sequenceGoesOn:
				id = 0
			case !begun:
				id = a.id
			}
			if !s.batch(ctx, r, w, end, yield) {
				return
			}
			a = c.newAsk(ctx, codeNext, 0)
			a.body.Uint("sequence", &id)
		}
	}
}

// batch yields the elements of an answer, and reports whether the sequence goes on.
func (s sequence[A, E]) batch(ctx context.Context, r *reader, w *wire, end []byte, yield func(E, error) bool) bool {
	var none E
	for {
		is := false
		if w.Flag("element", &is); !is || w.err != nil {
			break
		}
		var e E
		if s.element(w, &e); w.err != nil {
			break
		}
		if err := r.mayGoOn(ctx); err != nil {
			yield(none, err)
			return false
		}
		if !yield(e, nil) {
			return false
		}
	}
	var err error
	switch {
	case w.err != nil:
	case end[0] == sequenceFails:
		failure(w, &err)
		err = r.fault(err, true)
	case end[0] > sequenceFails:
		w.fail("unknown end of a sequence")
	}
	if w.end() != nil {
		err = fmt.Errorf("answer to %s: %w", s.name, w.err)
	} else if err == nil && end[0] == sequenceGoesOn {
		err = r.mayGoOn(ctx)
	}
	if err != nil {
		yield(none, err)
	}
	return err == nil && end[0] == sequenceGoesOn
}

// mayGoOn returns why a sequence must not go on although its elements are here.
func (r *reader) mayGoOn(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.client.closed.Load() {
		return fmt.Errorf("sequence: %w", backend.ErrExpired)
	}
	return r.alive()
}

// Head implements backend.Reader.
func (r *reader) Head(ctx context.Context) (backend.Cursor, error) {
	return callHead.ask(ctx, r, struct{}{})
}

// Thread implements backend.Reader.
func (r *reader) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return callThread.ask(ctx, r, id)
}

// Threads implements backend.Reader.
func (r *reader) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return callThreads.all(ctx, r, after)
}

// ThreadsEnding implements backend.Reader.
func (r *reader) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return callThreadsEnding.all(ctx, r, end)
}

// LastMessage implements backend.Reader.
func (r *reader) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return callLastMessage.ask(ctx, r, home)
}

// ListThreads implements backend.Reader.
func (r *reader) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return callListThreads.all(ctx, r, q)
}

// Context implements backend.Reader.
func (r *reader) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return callContext.ask(ctx, r, id)
}

// Contexts implements backend.Reader.
func (r *reader) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return callContexts.all(ctx, r, pageOf[structure.ThreadID]{thread, after})
}

// ContextsAlone implements backend.Reader.
func (r *reader) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return callContextsAlone.all(ctx, r, after)
}

// Children implements backend.Reader.
func (r *reader) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return callChildren.all(ctx, r, pageOf[structure.ContextID]{parent, after})
}

// Branch implements backend.Reader.
func (r *reader) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return callBranch.ask(ctx, r, inThread[string]{thread, name})
}

// Branches implements backend.Reader.
func (r *reader) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return callBranches.all(ctx, r, branchesArgs{thread, prefix, after})
}

// BranchesOf implements backend.Reader.
func (r *reader) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return callBranchesOf.all(ctx, r, inThread[structure.ContextID]{thread, id})
}

// BranchesBySource implements backend.Reader.
func (r *reader) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return callBranchesBySource.all(ctx, r, sourceArgs{sourceID: sourceID, thread: thread})
}

// Checkpoint implements backend.Reader.
func (r *reader) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return callCheckpoint.ask(ctx, r, inThread[string]{thread, name})
}

// Checkpoints implements backend.Reader.
func (r *reader) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return callCheckpoints.all(ctx, r, inThread[string]{thread, after})
}

// CheckpointsBySource implements backend.Reader.
func (r *reader) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return callCheckpointsBySource.all(ctx, r, sourceArgs{sourceID: sourceID, thread: thread})
}

// Find implements backend.Reader.
func (r *reader) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return callFind.all(ctx, r, sourceArgs{sourceID, thread, after})
}

// Run implements backend.Reader.
func (r *reader) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return callRun.ask(ctx, r, id)
}

// Ancestry implements backend.Reader.
func (r *reader) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return callAncestry.ask(ctx, r, ancestryArgs{id, limit})
}

// RunsOf implements backend.Reader.
func (r *reader) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return callRunsOf.all(ctx, r, inThread[structure.RunID]{thread, after})
}

// Forks implements backend.Reader.
func (r *reader) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return callForks.all(ctx, r, run)
}

// ForksAt implements backend.Reader.
func (r *reader) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return callForksAt.all(ctx, r, at)
}

// Last implements backend.Reader.
func (r *reader) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return callLast.ask(ctx, r, run)
}

// Path implements backend.Reader.
func (r *reader) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return callPath.all(ctx, r, pathArgs{tip, w, o.Bodies})
}

// Digest implements backend.Reader.
func (r *reader) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return callDigest.ask(ctx, r, tip)
}

// SpanSet implements backend.Reader.
func (r *reader) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return callSpanSet.ask(ctx, r, id)
}

// Alternatives implements backend.Reader.
func (r *reader) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return callAlternatives.all(ctx, r, id)
}

// Summaries implements backend.Reader.
func (r *reader) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return callSummaries.all(ctx, r, id)
}

// Reflog implements backend.Reader.
func (r *reader) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return callReflog.all(ctx, r, id)
}

// Value implements backend.Reader.
func (r *reader) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return callValue.ask(ctx, r, key)
}

// Values implements backend.Reader.
func (r *reader) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return callValues.all(ctx, r, valuesArgs{owner, prefix, after})
}

// ValueHistory implements backend.Reader.
func (r *reader) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return callValueHistory.all(ctx, r, key)
}

// ValueOwners implements backend.Reader.
func (r *reader) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return callValueOwners.all(ctx, r, ownersArgs{scope, after})
}

// Has implements backend.Reader.
func (r *reader) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return callHas.ask(ctx, r, ids)
}

// Blocks implements backend.Reader.
func (r *reader) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return callBlocks.ask(ctx, r, ids)
}

// Chunks implements backend.Reader.
func (r *reader) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	return callChunks.ask(ctx, r, keys)
}

// Where implements backend.Reader.
func (r *reader) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return callWhere.all(ctx, r, id)
}

// Stats implements backend.Reader.
func (r *reader) Stats(ctx context.Context) (backend.Stats, error) {
	return callStats.ask(ctx, r, struct{}{})
}
