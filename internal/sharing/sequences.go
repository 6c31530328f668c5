package sharing

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// resuming yields a sequence. Where its owner goes away or gives the store up, or ended a sequence
// of a guest that was not read for long, it begins another one from a place that again returns, given the last of the
// elements that were yielded and their number. Of that sequence the first elements for which
// again's function reports true are left out.
func resuming[T, A any](ctx context.Context, e *Engine, from A, begin func(h *handle, from A) iter.Seq2[T, error], again func(last T, n int) (A, func(T) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last, none T
		n, from := 0, from
		for range mostTries {
			h, err := e.handle(ctx)
			if err != nil {
				yield(none, err)
				return
			}
			var known func(T) bool
			if n > 0 {
				from, known = again(last, n)
			}
			interrupted := false
			for v, err := range begin(h, from) {
				if lost := e.lost(h, err); lost || errors.Is(err, backend.ErrExpired) && !e.closed.Load() {
					if interrupted = true; lost {
						e.lose(h)
					}
					break
				}
				if err == nil && known != nil {
					if known(v) {
						continue
					}
					known = nil
				}
				if !yield(v, err) || err != nil {
					return
				}
				last = v
				n++
			}
			if !interrupted {
				return
			}
		}
		yield(none, fmt.Errorf("store %s: its owners went away %d times: %w", e.dir, mostTries, backend.ErrExpired))
	}
}

// paged is resuming for a sequence that continues behind an element.
func paged[T, A any](ctx context.Context, e *Engine, from A, begin func(h *handle, from A) iter.Seq2[T, error], behind func(last T) A) iter.Seq2[T, error] {
	return resuming(ctx, e, from, begin, func(last T, _ int) (A, func(T) bool) { return behind(last), nil })
}

// nowhere is the place of sequences that always begin at their start.
type nowhere struct{}

// ordered is resuming for a sequence in an order: behind reports whether an element comes behind
// another.
func ordered[T any](ctx context.Context, e *Engine, begin func(h *handle) iter.Seq2[T, error], behind func(v, last T) bool) iter.Seq2[T, error] {
	return resuming(ctx, e, nowhere{}, func(h *handle, _ nowhere) iter.Seq2[T, error] { return begin(h) }, func(last T, _ int) (nowhere, func(T) bool) {
		return nowhere{}, func(v T) bool { return !behind(v, last) }
	})
}

// counted is resuming for a sequence to which elements are only added at its end.
func counted[T any](ctx context.Context, e *Engine, begin func(h *handle) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return resuming(ctx, e, nowhere{}, func(h *handle, _ nowhere) iter.Seq2[T, error] { return begin(h) }, func(_ T, n int) (nowhere, func(T) bool) {
		return nowhere{}, func(T) bool {
			n--
			return n >= 0
		}
	})
}

// distinct is resuming for a sequence whose elements differ by a key, and some of which may go
// away meanwhile.
func distinct[T any, K comparable](ctx context.Context, e *Engine, begin func(h *handle) iter.Seq2[T, error], key func(T) K) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var yielded []K
		var known map[K]struct{} // yielded, when the sequence begins again
		again := false
		begins := func(h *handle, _ nowhere) iter.Seq2[T, error] {
			if again = len(yielded) > 0; again {
				if known == nil {
					known = make(map[K]struct{}, len(yielded))
				}
				for _, k := range yielded[len(known):] {
					known[k] = struct{}{}
				}
			}
			return begin(h)
		}
		for v, err := range resuming(ctx, e, nowhere{}, begins, func(T, int) (nowhere, func(T) bool) { return nowhere{}, nil }) {
			if err == nil {
				k := key(v)
				if again {
					if _, is := known[k]; is {
						continue
					}
				}
				yielded = append(yielded, k)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// Snapshot implements backend.Engine. It ends with the owner.
func (e *Engine) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	return do(ctx, e, func(h *handle) (backend.Snapshot, error) { return h.Snapshot(ctx) })
}

// Recent implements backend.Engine.
func (e *Engine) Recent() backend.Reader { return e }

// Feed implements backend.Engine.
func (e *Engine) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	head, err := e.Head(ctx)
	if err != nil {
		return func(yield func(*structure.Commit, error) bool) { yield(nil, err) }
	}
	all := paged(ctx, e, after, func(h *handle, after backend.Cursor) iter.Seq2[*structure.Commit, error] { return h.Feed(ctx, after) }, func(last *structure.Commit) backend.Cursor {
		return backend.Cursor{Number: last.Number, ID: last.ID}
	})
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
	return do(ctx, e, func(h *handle) (backend.Cursor, error) { return h.Wait(ctx, after) })
}

// Verify implements backend.Engine.
func (e *Engine) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return func(yield func(backend.Finding, error) bool) {
		for range mostTries {
			h, err := e.handle(ctx)
			if err != nil {
				yield(backend.Finding{}, err)
				return
			}
			found, again := false, false
			for f, err := range h.Verify(ctx, o) {
				if again = !found && e.lost(h, err); again { // nothing was reported: it begins anew
					e.lose(h)
					break
				}
				if found = true; !yield(f, err) {
					return
				}
			}
			if !again {
				return
			}
		}
		yield(backend.Finding{}, fmt.Errorf("store %s: its owners went away %d times: %w", e.dir, mostTries, backend.ErrExpired))
	}
}
