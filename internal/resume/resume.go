// Package resume continues sequences in another reader if their reader goes away while they are
// read.
package resume

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Open returns a reader for one sequence.
type Open[R any] func(ctx context.Context) (Opened[R], error)

// Opened is a reader that may go away.
type Opened[R any] struct {
	Reader R
	// Interrupted reports whether an error of a sequence means that the reader went away, so that
	// the sequence continues in another. It is called at most once.
	Interrupted func(error) bool
	// Close, when not nil, is called when the sequence has ended.
	Close func()
}

// maxTries limits how often a sequence is continued.
const maxTries = 100

// resuming yields a sequence, and begins it again in another reader if its reader goes away. again is called with the last
// element that was yielded and the number of elements. It returns where the new sequence begins, and a function, which may be
// nil, that reports whether an element was yielded before. Such elements at the start of the new sequence are left out.
func resuming[R, T, A any](ctx context.Context, open Open[R], from A, begin func(r R, from A) iter.Seq2[T, error], again func(last T, n int) (A, func(T) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last, none T
		n, from := 0, from
		for range maxTries {
			opened, err := open(ctx)
			if err != nil {
				yield(none, err)
				return
			}
			var known func(T) bool
			if n > 0 {
				from, known = again(last, n)
			}
			ended := func() bool {
				if opened.Close != nil {
					defer opened.Close()
				}
				for v, err := range begin(opened.Reader, from) {
					if err != nil && opened.Interrupted(err) {
						return false
					}
					if err == nil && known != nil {
						if known(v) {
							continue
						}
						known = nil
					}
					if !yield(v, err) || err != nil {
						return true
					}
					last = v
					n++
				}
				return true
			}()
			if ended {
				return
			}
		}
		yield(none, fmt.Errorf("a sequence was interrupted %d times: %w", maxTries, backend.ErrExpired))
	}
}

// Paged yields a sequence that can be continued after any element. after returns the position after an element.
func Paged[R, T, A any](ctx context.Context, open Open[R], from A, begin func(r R, from A) iter.Seq2[T, error], after func(last T) A) iter.Seq2[T, error] {
	return resuming(ctx, open, from, begin, func(last T, _ int) (A, func(T) bool) { return after(last), nil })
}

// nowhere is the position type of sequences that can only start at the beginning.
type nowhere struct{}

func fromStart[T any](begin func(r backend.Reader) iter.Seq2[T, error]) func(backend.Reader, nowhere) iter.Seq2[T, error] {
	return func(r backend.Reader, _ nowhere) iter.Seq2[T, error] { return begin(r) }
}

// ordered yields a sequence in an order. after reports whether an element comes after another.
func ordered[T any](ctx context.Context, open Open[backend.Reader], begin func(r backend.Reader) iter.Seq2[T, error], after func(v, last T) bool) iter.Seq2[T, error] {
	return resuming(ctx, open, nowhere{}, fromStart(begin), func(last T, _ int) (nowhere, func(T) bool) {
		return nowhere{}, func(v T) bool { return !after(v, last) }
	})
}

// appended yields a sequence that others change only by adding elements at the end and removing elements at the
// start.
func appended[T any, K comparable](ctx context.Context, open Open[backend.Reader], begin func(r backend.Reader) iter.Seq2[T, error], key func(T) K) iter.Seq2[T, error] {
	var last K
	begins := func(r backend.Reader, n int) iter.Seq2[T, error] {
		if n == 0 {
			return begin(r)
		}
		return func(yield func(T, error) bool) {
			var all []T
			next := 0 // the place after the last element that was yielded, if that is still there
			for v, err := range begin(r) {
				if err != nil {
					yield(v, err)
					return
				}
				if all = append(all, v); key(v) == last && len(all) <= n {
					next = len(all)
				}
			}
			for _, v := range all[next:] {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
	return resuming(ctx, open, 0, begins, func(v T, n int) (int, func(T) bool) {
		last = key(v)
		return n, nil
	})
}

// distinct yields a sequence whose elements have different keys. Others may add and remove elements anywhere.
func distinct[T any, K comparable](ctx context.Context, open Open[backend.Reader], begin func(r backend.Reader) iter.Seq2[T, error], key func(T) K) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var yielded []K
		var known map[K]bool // yielded, if the sequence began again
		again := false
		begins := func(r backend.Reader, _ nowhere) iter.Seq2[T, error] {
			if again = len(yielded) > 0; again {
				if known == nil {
					known = make(map[K]bool, len(yielded))
				}
				for _, k := range yielded[len(known):] {
					known[k] = true
				}
			}
			return begin(r)
		}
		for v, err := range resuming(ctx, open, nowhere{}, begins, func(T, int) (nowhere, func(T) bool) { return nowhere{}, nil }) {
			if err == nil {
				k := key(v)
				if again && known[k] {
					continue
				}
				yielded = append(yielded, k)
			}
			if !yield(v, err) {
				return
			}
		}
	}
}
