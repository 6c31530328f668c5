package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// feedArgs request at most a number of commits after a cursor.
type feedArgs struct {
	after   backend.Cursor
	through uint64
}

func walkFeed(w *wire, a *feedArgs) {
	cursor(w, &a.after)
	w.Uint("through", &a.through)
}

// Methods of the engine itself.
var (
	callSnapshot = call0(codeSnapshot, "Snapshot", func(w *wire, id *uint64) { w.Uint("id", id) }, receiver.snapshot)
	callFeed     = sequence1(codeFeed, "Feed", walkFeed, commit, receiver.feed)
	callWait     = call1(codeWait, "Wait", cursor, cursor, onEngine(backend.Engine.Wait))
	callOutcome  = call1(codeOutcome, "Outcome", once, receipt, onEngine(backend.Engine.Outcome))
	callForget   = call1(codeForget, "Forget", anID, nothing,
		func(t receiver, ctx context.Context, session [16]byte) (struct{}, error) {
			return struct{}{}, t.engine.Forget(ctx, session)
		})
	callUpload = call1(codeUpload, "Upload", records, anInteger, onEngine(backend.Engine.Upload))
	callSync   = call0(codeSync, "Sync", nothing,
		func(t receiver, ctx context.Context) (struct{}, error) { return struct{}{}, t.engine.Sync(ctx) })
	callVerify  = sequence1(codeVerify, "Verify", func(w *wire, deep *bool) { w.Flag("deep", deep) }, finding, receiver.verify)
	callPack    = call1(codePack, "Pack", packOptions, packReport, receiver.pack)
	callCollect = call1(codeCollect, "Collect", collectOptions, collectReport, receiver.collect)
	callCopy    = sequence1(codeCopy, "Copy", nothing, copyPart, receiver.copy)
	callGuests  = call0(codeGuests, "Guests", func(w *wire, all *[]Process) { list(w, "guests", all, 2, process) },
		func(t receiver, _ context.Context) ([]Process, error) { return t.peer.server.Guests(), nil })
)

// onEngine returns a method of an engine as a method of a receiver.
func onEngine[A, R any](do func(backend.Engine, context.Context, A) (R, error)) func(receiver, context.Context, A) (R, error) {
	return func(t receiver, ctx context.Context, a A) (R, error) { return do(t.engine, ctx, a) }
}

func (t receiver) feed(ctx context.Context, a feedArgs) iter.Seq2[*structure.Commit, error] {
	return func(yield func(*structure.Commit, error) bool) {
		for c, err := range t.engine.Feed(ctx, a.after) {
			if err == nil && c.Number > a.through || !yield(c, err) {
				return
			}
		}
	}
}

func (t receiver) verify(ctx context.Context, deep bool) iter.Seq2[backend.Finding, error] {
	return t.engine.Verify(ctx, backend.VerifyOptions{Deep: deep, Progress: t.progress})
}

func (t receiver) pack(ctx context.Context, o backend.PackOptions) (backend.PackReport, error) {
	p, ok := t.engine.(backend.Packer)
	if !ok {
		return backend.PackReport{}, unsupported("pack")
	}
	o.Progress = t.progress
	return p.Pack(ctx, o)
}

func (t receiver) collect(ctx context.Context, o backend.CollectOptions) (backend.CollectReport, error) {
	c, ok := t.engine.(backend.Collector)
	if !ok {
		return backend.CollectReport{}, unsupported("collect")
	}
	o.Progress = t.progress
	return c.Collect(ctx, o)
}

func (t receiver) copy(ctx context.Context, _ struct{}) iter.Seq2[backend.CopyPart, error] {
	c, ok := t.engine.(backend.CopySource)
	if !ok {
		return func(yield func(backend.CopyPart, error) bool) { yield(backend.CopyPart{}, unsupported("copy")) }
	}
	return c.Copy(ctx)
}

func unsupported(what string) error {
	return fmt.Errorf("%s is not supported by this engine: %w", what, errors.ErrUnsupported)
}

// serving maps codes to methods.
var serving = byCode(
	callHead, callThread, callThreads, callThreadsEnding, callLastMessage, callListThreads,
	callContext, callRemnant, callContexts, callContextsAlone, callChildren,
	callBranch, callBranches, callBranchesOf, callBranchesBySource,
	callCheckpoint, callCheckpoints, callCheckpointsBySource, callFind,
	callRun, callAncestry, callRunsOf, callForks, callForksAt, callLast,
	callPath, callDigest, callSpanSet, callAlternatives, callSummaries, callReflog,
	callValue, callValues, callValueHistory, callValueOwners,
	callHas, callBlocks, callChunks, callWhere, callStats,
	callSnapshot, callFeed, callWait, callApply, callOutcome, callForget, callUpload, callSync, callVerify,
	callPack, callCollect, callCopy, callGuests,
)

// snapshot opens a snapshot. It returns its number, which is that of the request.
func (t receiver) snapshot(ctx context.Context) (uint64, error) {
	p := t.peer
	s, err := t.engine.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.leaving:
		err = ErrMoved
	case t.request.cancelled:
		err = context.Canceled
	case len(p.snapshots) >= maxSnapshots:
		err = fmt.Errorf("%d snapshots at once: %w", maxSnapshots, backend.ErrTooLarge)
	default:
		p.snapshots[t.request.id] = s
		return t.request.id, nil
	}
	_ = s.Close()
	return 0, err
}
