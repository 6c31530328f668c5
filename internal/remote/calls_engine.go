package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Methods of engines that are no reads of a state.

type applyArgs struct {
	commit  *structure.Commit
	options backend.Options
}

// applied is the answer to a commit: its receipt, and the contexts whose tips it stated as they are
// afterwards. With them a process that extends the same context again needs not ask where it is.
type applied struct {
	receipt  backend.Receipt
	contexts []backend.Context
}

// maxApplied limits the contexts in an answer.
const maxApplied = 8

func apply(ctx context.Context, t target, a applyArgs) (is applied, err error) {
	if is.receipt, err = t.engine.Apply(ctx, a.commit, a.options); err != nil {
		return is, err
	}
	for _, expected := range a.options.Tips[:min(len(a.options.Tips), maxApplied)] {
		if c, err := t.engine.Context(ctx, expected.Context); err == nil {
			is.contexts = append(is.contexts, c)
		}
	}
	return is, nil
}

// feedArgs ask for the commits behind a cursor, up to a number.
type feedArgs struct {
	after   backend.Cursor
	through uint64
}

func feed(ctx context.Context, t target, a feedArgs) iter.Seq2[*structure.Commit, error] {
	return func(yield func(*structure.Commit, error) bool) {
		for c, err := range t.engine.Feed(ctx, a.after) {
			if err == nil && c.Number > a.through || !yield(c, err) {
				return
			}
		}
	}
}

var (
	callSnapshot = call[struct{}, uint64]{
		codeSnapshot, "Snapshot", nothing, func(w *wire, id *uint64) { w.Uint("id", id) },
		func(ctx context.Context, t target, _ struct{}) (uint64, error) { return t.peer.snapshot(ctx, t) },
	}
	callFeed = sequence[feedArgs, *structure.Commit]{
		codeFeed, "Feed", func(w *wire, a *feedArgs) {
			cursor(w, &a.after)
			w.Uint("through", &a.through)
		}, commit, feed,
	}
	callWait = call[backend.Cursor, backend.Cursor]{
		codeWait, "Wait", cursor, cursor,
		func(ctx context.Context, t target, after backend.Cursor) (backend.Cursor, error) {
			return t.engine.Wait(ctx, after)
		},
	}
	callApply = call[applyArgs, applied]{
		codeApply, "Apply", func(w *wire, a *applyArgs) {
			options(w, &a.options)
			commit(w, &a.commit)
		}, func(w *wire, is *applied) {
			receipt(w, &is.receipt)
			list(w, "contexts", &is.contexts, len(structure.ContextID{}), contextNow)
		}, apply,
	}
	callOutcome = call[backend.Once, backend.Receipt]{
		codeOutcome, "Outcome", once, receipt,
		func(ctx context.Context, t target, o backend.Once) (backend.Receipt, error) {
			return t.engine.Outcome(ctx, o)
		},
	}
	callForget = call[[16]byte, struct{}]{
		codeForget, "Forget", anID[[16]byte], nothing,
		func(ctx context.Context, t target, session [16]byte) (struct{}, error) {
			return struct{}{}, t.engine.Forget(ctx, session)
		},
	}
	callUpload = call[[]*structure.Chunk, int]{
		codeUpload, "Upload", records[*structure.Chunk], func(w *wire, n *int) { whole(w, "added", n) },
		func(ctx context.Context, t target, chunks []*structure.Chunk) (int, error) {
			return t.engine.Upload(ctx, chunks)
		},
	}
	callSync = call[struct{}, struct{}]{
		codeSync, "Sync", nothing, nothing,
		func(ctx context.Context, t target, _ struct{}) (struct{}, error) {
			return struct{}{}, t.engine.Sync(ctx)
		},
	}
	callVerify = sequence[bool, backend.Finding]{
		codeVerify, "Verify", func(w *wire, deep *bool) { w.Flag("deep", deep) }, finding,
		func(ctx context.Context, t target, deep bool) iter.Seq2[backend.Finding, error] {
			return t.engine.Verify(ctx, backend.VerifyOptions{Deep: deep, Progress: t.progress})
		},
	}
	callPack = call[backend.PackOptions, backend.PackReport]{
		codePack, "Pack", packOptions, packReport,
		func(ctx context.Context, t target, o backend.PackOptions) (backend.PackReport, error) {
			p, ok := t.engine.(backend.Packer)
			if !ok {
				return backend.PackReport{}, unsupported("pack")
			}
			o.Progress = t.progress
			return p.Pack(ctx, o)
		},
	}
	callCollect = call[backend.CollectOptions, backend.CollectReport]{
		codeCollect, "Collect", collectOptions, collectReport,
		func(ctx context.Context, t target, o backend.CollectOptions) (backend.CollectReport, error) {
			c, ok := t.engine.(backend.Collector)
			if !ok {
				return backend.CollectReport{}, unsupported("collect")
			}
			o.Progress = t.progress
			return c.Collect(ctx, o)
		},
	}
	callCopy = sequence[struct{}, backend.CopyPart]{
		codeCopy, "Copy", nothing, copyPart,
		func(ctx context.Context, t target, _ struct{}) iter.Seq2[backend.CopyPart, error] {
			c, ok := t.engine.(backend.CopySource)
			if !ok {
				return func(yield func(backend.CopyPart, error) bool) { yield(backend.CopyPart{}, unsupported("copy")) }
			}
			return c.Copy(ctx)
		},
	}
	callGuests = call[struct{}, []Process]{
		codeGuests, "Guests", nothing, func(w *wire, all *[]Process) { list(w, "guests", all, 2, process) },
		func(ctx context.Context, t target, _ struct{}) ([]Process, error) { return t.peer.server.Guests(), nil },
	}
)

func unsupported(what string) error {
	return fmt.Errorf("%s: this engine does not: %w", what, errors.ErrUnsupported)
}
