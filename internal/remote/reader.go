package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// translate returns the error of a request as the port defines it: ErrExpired if a snapshot, or a sequence that was
// started, is gone.
func (r *reader) translate(err error, begun bool) error {
	gone := errors.Is(err, ErrDisconnected) ||
		errors.Is(err, ErrMoved) && r.snapshot != 0 ||
		errors.Is(err, backend.ErrClosed) && r.client.closed.Load()
	if gone && (r.snapshot != 0 || begun) {
		return fmt.Errorf("%w: %w", backend.ErrExpired, err)
	}
	return err
}

func (r *reader) alive() error {
	if r.snapshot != 0 && r.closed.Load() {
		return fmt.Errorf("snapshot: %w", backend.ErrExpired)
	}
	return nil
}

// ask calls a method.
func (c unaryMethod[A, R]) ask(ctx context.Context, r *reader, args A) (result R, err error) {
	return c.report(ctx, r, args, nil)
}

// report calls a method, and passes reports of its progress on.
func (c unaryMethod[A, R]) report(ctx context.Context, r *reader, args A, progress func(done, total int64)) (result R, err error) {
	if err := r.alive(); err != nil {
		return result, err
	}
	a := r.client.newAsk(ctx, c.code, r.snapshot)
	a.progress = progress
	c.args(a.body, &args)
	w, err := r.client.request(ctx, a)
	if err != nil {
		return result, r.translate(err, false)
	}
	return c.read(w)
}

func (c unaryMethod[A, R]) read(w *wire) (result R, err error) {
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

// report is all with reports of progress.
func (s sequence[A, E]) report(ctx context.Context, r *reader, args A, progress func(done, total int64)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		var none E
		if err := r.alive(); err != nil {
			yield(none, err)
			return
		}
		c := r.client
		a := c.newAsk(ctx, s.code, r.snapshot)
		s.args(a.body, &args)
		var id uint64 // number of the sequence, while the server keeps it
		defer func() {
			if id != 0 {
				c.cancel(id)
			}
		}()
		for begun := false; ; begun = true {
			a.progress = progress
			w, err := c.request(ctx, a)
			if err != nil {
				yield(none, r.translate(err, begun))
				return
			}
			end := w.take(1, "end")
			switch {
			case len(end) == 1 && end[0] != sequenceContinues:
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

// batch yields the elements of an answer, and reports whether the sequence continues.
func (s sequence[A, E]) batch(ctx context.Context, r *reader, w *wire, end []byte, yield func(E, error) bool) bool {
	var none E
	for {
		more := false
		if w.Flag("element", &more); !more || w.err != nil {
			break
		}
		var e E
		if s.element(w, &e); w.err != nil {
			break
		}
		if err := r.mayContinue(ctx); err != nil {
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
		err = r.translate(err, true)
	case end[0] > sequenceFails:
		w.fail("unknown end of a sequence")
	}
	if w.end() != nil {
		err = fmt.Errorf("answer to %s: %w", s.name, w.err)
	} else if err == nil && end[0] == sequenceContinues {
		err = r.mayContinue(ctx)
	}
	if err != nil {
		yield(none, err)
	}
	return err == nil && end[0] == sequenceContinues
}

// mayContinue returns the reason why a sequence must not yield elements that have already arrived.
func (r *reader) mayContinue(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.client.closed.Load() {
		return fmt.Errorf("sequence: %w", backend.ErrExpired)
	}
	return r.alive()
}

// The methods of backend.Reader.

func (r *reader) Head(ctx context.Context) (backend.Cursor, error) {
	return callHead.ask(ctx, r, struct{}{})
}

func (r *reader) Thread(ctx context.Context, id structure.ThreadID) (*structure.Thread, error) {
	return callThread.ask(ctx, r, id)
}

func (r *reader) Threads(ctx context.Context, after structure.ThreadID) iter.Seq2[*structure.Thread, error] {
	return callThreads.all(ctx, r, after)
}

func (r *reader) ThreadsEnding(ctx context.Context, end [backend.IDEnd]byte) iter.Seq2[*structure.Thread, error] {
	return callThreadsEnding.all(ctx, r, end)
}

func (r *reader) LastMessage(ctx context.Context, home structure.Home) (time.Time, error) {
	return callLastMessage.ask(ctx, r, home)
}

func (r *reader) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return callListThreads.all(ctx, r, q)
}

func (r *reader) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	return callContext.ask(ctx, r, id)
}

func (r *reader) Remnant(ctx context.Context, id structure.ContextID) (*structure.Remnant, error) {
	return callRemnant.ask(ctx, r, id)
}

func (r *reader) Contexts(ctx context.Context, thread structure.ThreadID, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return callContexts.all(ctx, r, pairOf(thread, after))
}

func (r *reader) ContextsAlone(ctx context.Context, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return callContextsAlone.all(ctx, r, after)
}

func (r *reader) Children(ctx context.Context, parent, after structure.ContextID) iter.Seq2[backend.Context, error] {
	return callChildren.all(ctx, r, pairOf(parent, after))
}

func (r *reader) Branch(ctx context.Context, thread structure.ThreadID, name string) (*structure.Branch, error) {
	return callBranch.ask(ctx, r, pairOf(thread, name))
}

func (r *reader) Branches(ctx context.Context, thread structure.ThreadID, prefix, after string) iter.Seq2[*structure.Branch, error] {
	return callBranches.all(ctx, r, branchesArgs{thread, prefix, after})
}

func (r *reader) BranchesOf(ctx context.Context, thread structure.ThreadID, id structure.ContextID) iter.Seq2[*structure.Branch, error] {
	return callBranchesOf.all(ctx, r, pairOf(thread, id))
}

func (r *reader) BranchesBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Branch, error] {
	return callBranchesBySource.all(ctx, r, pairOf(sourceID, thread))
}

func (r *reader) Checkpoint(ctx context.Context, thread structure.ThreadID, name string) (*structure.Checkpoint, error) {
	return callCheckpoint.ask(ctx, r, pairOf(thread, name))
}

func (r *reader) Checkpoints(ctx context.Context, thread structure.ThreadID, after string) iter.Seq2[*structure.Checkpoint, error] {
	return callCheckpoints.all(ctx, r, pairOf(thread, after))
}

func (r *reader) CheckpointsBySource(ctx context.Context, sourceID string, thread structure.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
	return callCheckpointsBySource.all(ctx, r, pairOf(sourceID, thread))
}

func (r *reader) Find(ctx context.Context, sourceID string, thread structure.ThreadID, after backend.Found) iter.Seq2[backend.Found, error] {
	return callFind.all(ctx, r, findArgs{sourceID, thread, after})
}

func (r *reader) Run(ctx context.Context, id structure.RunID) (structure.RunInfo, error) {
	return callRun.ask(ctx, r, id)
}

func (r *reader) Ancestry(ctx context.Context, id structure.RunID, limit int) ([]structure.RunInfo, error) {
	return callAncestry.ask(ctx, r, pairOf(id, limit))
}

func (r *reader) RunsOf(ctx context.Context, thread structure.ThreadID, after structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return callRunsOf.all(ctx, r, pairOf(thread, after))
}

func (r *reader) Forks(ctx context.Context, run structure.RunID) iter.Seq2[structure.RunInfo, error] {
	return callForks.all(ctx, r, run)
}

func (r *reader) ForksAt(ctx context.Context, at structure.SpanRef) iter.Seq2[structure.RunInfo, error] {
	return callForksAt.all(ctx, r, at)
}

func (r *reader) Last(ctx context.Context, run structure.RunID) (structure.SpanRef, error) {
	return callLast.ask(ctx, r, run)
}

func (r *reader) Path(ctx context.Context, tip structure.SpanRef, w structure.Window, o backend.PathOptions) iter.Seq2[*backend.Step, error] {
	return callPath.all(ctx, r, pathArgs{tip, w, o.Bodies})
}

func (r *reader) Digest(ctx context.Context, tip structure.SpanRef) (structure.Digest, error) {
	return callDigest.ask(ctx, r, tip)
}

func (r *reader) SpanSet(ctx context.Context, id structure.SpanSetID) (*structure.SpanSet, error) {
	return callSpanSet.ask(ctx, r, id)
}

func (r *reader) Alternatives(ctx context.Context, id structure.SpanSetID) iter.Seq2[structure.SpanRef, error] {
	return callAlternatives.all(ctx, r, id)
}

func (r *reader) Summaries(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Summary, error] {
	return callSummaries.all(ctx, r, id)
}

func (r *reader) Reflog(ctx context.Context, id structure.ContextID) iter.Seq2[*structure.Reflog, error] {
	return callReflog.all(ctx, r, id)
}

func (r *reader) Value(ctx context.Context, key structure.ValueKey) (backend.Value, error) {
	return callValue.ask(ctx, r, key)
}

func (r *reader) Values(ctx context.Context, owner structure.Owner, prefix, after string) iter.Seq2[backend.Value, error] {
	return callValues.all(ctx, r, valuesArgs{owner, prefix, after})
}

func (r *reader) ValueHistory(ctx context.Context, key structure.ValueKey) iter.Seq2[backend.Value, error] {
	return callValueHistory.all(ctx, r, key)
}

func (r *reader) ValueOwners(ctx context.Context, scope structure.Scope, after string) iter.Seq2[string, error] {
	return callValueOwners.all(ctx, r, pairOf(scope, after))
}

func (r *reader) Has(ctx context.Context, ids []content.ID) ([]bool, error) {
	return callHas.ask(ctx, r, ids)
}

func (r *reader) Blocks(ctx context.Context, ids []content.ID) ([]*structure.Block, error) {
	return callBlocks.ask(ctx, r, ids)
}

func (r *reader) Chunks(ctx context.Context, keys []content.Key) ([][]byte, error) {
	return callChunks.ask(ctx, r, keys)
}

func (r *reader) Where(ctx context.Context, id content.ID) iter.Seq2[structure.UsageID, error] {
	return callWhere.all(ctx, r, id)
}

func (r *reader) Stats(ctx context.Context) (backend.Stats, error) {
	return callStats.ask(ctx, r, struct{}{})
}
