package sharing

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// begin returns the handle for a sequence. The sequence continues with another handle if the handle is lost, or if
// the owner ended the sequence because it was not read for too long.
func begin[R any](e *Engine, readerOf func(*storeHandle) R) resume.Open[R] {
	return func(ctx context.Context) (resume.Opened[R], error) {
		h, err := e.handle(ctx)
		return resume.Opened[R]{Reader: readerOf(h), Interrupted: func(err error) bool {
			lost := e.lost(h, err)
			if lost {
				e.lose(h)
			}
			return lost || errors.Is(err, backend.ErrExpired) && !e.closed.Load()
		}}, err
	}
}

// Snapshot implements backend.Engine. It expires when the handle is lost.
func (e *Engine) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	return do(ctx, e, func(h *storeHandle) (backend.Snapshot, error) { return h.Snapshot(ctx) })
}

// Recent implements backend.Engine. For a guest it includes the contexts that the guest has extended.
func (e *Engine) Recent() backend.Reader {
	if h := e.current.Load(); h != nil && h.client != nil {
		return recent{e, h.client.Recent()}
	}
	return e
}

// recent reads contexts from the cache of a guest's connection, and everything else from the engine.
type recent struct {
	*Engine
	known backend.Reader
}

// Context implements backend.Reader. If the owner is gone, the next one is asked.
func (r recent) Context(ctx context.Context, id structure.ContextID) (backend.Context, error) {
	if c, err := r.known.Context(ctx, id); err == nil {
		return c, nil
	}
	return r.Engine.Context(ctx, id)
}

// Feed implements backend.Engine.
func (e *Engine) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	head, err := e.Head(ctx)
	if err != nil {
		return func(yield func(*structure.Commit, error) bool) { yield(nil, err) }
	}
	all := resume.Paged(ctx, begin(e, func(h *storeHandle) *storeHandle { return h }), after,
		func(h *storeHandle, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
			return h.Feed(ctx, after)
		},
		func(last *structure.Commit) backend.Cursor { return backend.Cursor{Number: last.Number, ID: last.ID} })
	return func(yield func(*structure.Commit, error) bool) {
		for c, err := range all {
			if err == nil && c.Number > head.Number || !yield(c, err) {
				return
			}
		}
	}
}

// Wait implements backend.Engine.
func (e *Engine) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	return do(ctx, e, func(h *storeHandle) (backend.Cursor, error) { return h.Wait(ctx, after) })
}

// Verify implements backend.Engine.
func (e *Engine) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return func(yield func(backend.Finding, error) bool) {
		for range maxTries {
			h, err := e.handle(ctx)
			if err != nil {
				yield(backend.Finding{}, err)
				return
			}
			found, retry := false, false
			for f, err := range h.Verify(ctx, o) {
				if retry = !found && e.lost(h, err); retry { // nothing was yielded, so it can start again
					e.lose(h)
					break
				}
				if found = true; !yield(f, err) {
					return
				}
			}
			if !retry {
				return
			}
		}
		yield(backend.Finding{}, fmt.Errorf("store %s: its owners went away %d times: %w", e.dir, maxTries, backend.ErrExpired))
	}
}
