package refs

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/pages"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Within returns a resolver that knows only the threads that allows selects, and the messages in their histories: no name leads
// to anything else, and no error names anything else. find finds a thread by the id that its creator chose. The thread of the
// resolver must be one of those selected. The result is for one request in one goroutine, because it caches what the histories reach.
func (r *Resolver) Within(allows func(*structure.Thread) bool, find finder) *Resolver {
	return &Resolver{store: r.store, view: r.view, thread: r.thread, allows: allows, find: find, kept: newReaches()}
}

// Alone returns a resolver that knows only its own thread and reads no other.
func (r *Resolver) Alone() *Resolver {
	id := r.thread.ID()
	return &Resolver{
		store: r.store, view: r.view, thread: r.thread, find: r.find, alone: true, allows: func(t *structure.Thread) bool { return t.ID == id }, kept: newReaches(),
	}
}

// mayRead reports whether the resolver may use a thread.
func (r *Resolver) mayRead(t *structure.Thread) bool { return r.allows == nil || r.allows(t) }

// threads yields the threads that the resolver may use.
func (r *Resolver) threads(ctx context.Context) iter.Seq2[*structure.Thread, error] {
	return r.threadsOf(ctx, r.view)
}

// threadsOf yields the threads of a state that the resolver may use.
func (r *Resolver) threadsOf(ctx context.Context, state backend.Reader) iter.Seq2[*structure.Thread, error] {
	if r.alone {
		return func(yield func(*structure.Thread, error) bool) { yield(state.Thread(ctx, r.thread.ID())) }
	}
	return only(state.Threads(ctx, structure.ThreadID{}), r.mayRead)
}

// only yields the elements that fit.
func only[T any](all iter.Seq2[T, error], fits func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for element, err := range all {
			if (err != nil || fits(element)) && !yield(element, err) {
				return
			}
		}
	}
}

// allowedThread returns a thread, or nil if the resolver may not use it.
func (r *Resolver) allowedThread(ctx context.Context, id lineage.ThreadID) (*lineage.Thread, error) {
	if known, err := r.knows(ctx, id); err != nil || !known {
		return nil, err
	}
	return orNone(r.store.Thread(ctx, id))
}

// knows reports whether the resolver may use a thread.
func (r *Resolver) knows(ctx context.Context, id lineage.ThreadID) (bool, error) {
	if r.allows == nil {
		return true, nil
	}
	t, err := orNone(r.view.Thread(ctx, id))
	return t != nil && r.allows(t), err
}

// allowedContext returns a context, or nil if the resolver may not use it.
func (r *Resolver) allowedContext(ctx context.Context, id lineage.ContextID) (*lineage.Context, error) {
	c, err := orNone(r.store.Context(ctx, id))
	if c == nil || err != nil || r.allows == nil {
		return c, err
	}
	found, err := r.view.Context(ctx, id)
	if isNotFound(err) {
		return nil, nil
	}
	if known := false; err == nil {
		if known, err = r.knows(ctx, found.Thread); known {
			return c, nil
		}
	}
	return nil, err
}

// contexts yields the contexts of a thread, or of all threads for the zero id.
func (r *Resolver) contexts(ctx context.Context, thread lineage.ThreadID) iter.Seq2[backend.Context, error] {
	if r.allows == nil || !thread.IsZero() {
		return r.view.Contexts(ctx, thread, structure.ContextID{})
	}
	return func(yield func(backend.Context, error) bool) {
		for t, err := range r.threads(ctx) {
			if err != nil {
				yield(backend.Context{}, err)
				return
			}
			for c, err := range r.view.Contexts(ctx, t.ID, structure.ContextID{}) {
				if !yield(c, err) || err != nil {
					return
				}
			}
		}
	}
}

// extents yields the wanted runs of the store, each once, or the parts of them that the resolver may use.
func (r *Resolver) extents(ctx context.Context, wanted func(structure.RunID) bool) iter.Seq2[backend.Extent, error] {
	return func(yield func(backend.Extent, error) bool) {
		if r.allows == nil {
			found, err := backend.AtOnce(ctx, r.view, func(s backend.Snapshot) (found []structure.RunInfo, err error) {
				for run, err := range backend.AllRuns(ctx, s) {
					if err != nil {
						return nil, err
					}
					if wanted(run.ID) {
						found = append(found, run)
					}
				}
				return found, nil
			})
			if err != nil {
				yield(backend.Extent{}, err)
				return
			}
			r.whole(ctx, found)(yield)
			return
		}
		found, err := backend.AtOnce(ctx, r.view, func(s backend.Snapshot) (backend.Reach, error) {
			found := make(backend.Reach)
			for some, err := range r.parts(ctx, s) {
				if err != nil {
					return nil, err
				}
				for id, e := range some {
					if wanted(id) {
						found.Add(e)
					}
				}
			}
			return found, nil
		})
		if err != nil {
			yield(backend.Extent{}, err)
			return
		}
		for _, e := range found.Extents() {
			r.kept.found.Add(&e)
			if !yield(e, nil) {
				return
			}
		}
	}
}

// parts yields what the histories of the allowed threads lead to, for some threads after the other: that of all is more than
// belongs into memory. A run may be in several.
func (r *Resolver) parts(ctx context.Context, state backend.Snapshot) iter.Seq2[backend.Reach, error] {
	return func(yield func(backend.Reach, error) bool) {
		for page, err := range pages.Of(r.threadsOf(ctx, state), threadsAtOnce) {
			var some backend.Reach
			if err == nil {
				some, err = backend.ReachOfAll(ctx, state, page)
			}
			if !yield(some, err) || err != nil {
				return
			}
		}
	}
}

func newReaches() *reaches {
	return &reaches{byThread: make(map[lineage.ThreadID]backend.Reach), found: make(backend.Reach)}
}

// reachOf returns what the histories of a thread lead to.
func (r *Resolver) reachOf(ctx context.Context, t *structure.Thread) (backend.Reach, error) {
	reach, known := r.kept.byThread[t.ID]
	if known {
		return reach, nil
	}
	reach, err := backend.ReachOf(ctx, r.view, t)
	if err == nil {
		r.kept.byThread[t.ID] = reach
	}
	return reach, err
}

// whole yields runs in full.
func (r *Resolver) whole(ctx context.Context, runs []structure.RunInfo) iter.Seq2[backend.Extent, error] {
	return func(yield func(backend.Extent, error) bool) {
		for _, run := range runs {
			last, err := r.view.Last(ctx, run.ID)
			if !yield(backend.Extent{Run: run, Last: last.Seq}, err) || err != nil {
				return
			}
		}
	}
}

// Sees reports whether the resolver may use a message.
func (r *Resolver) Sees(ctx context.Context, at lineage.SpanRef) (bool, error) {
	if r.allows == nil || at.IsZero() {
		return true, nil
	}
	home, err := backend.HomeOf(ctx, r.view, at.Run)
	if isNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if home != nil && r.allows(home) {
		return true, nil
	}
	// It may have been forked from another thread.
	if r.thread != nil {
		if has, err := r.has(ctx, r.thread.ID(), at); has || err != nil {
			return has, err
		}
	}
	if r.kept.found.Has(at) {
		return true, nil
	}
	e, err := backend.AtOnce(ctx, r.view, func(s backend.Snapshot) (*backend.Extent, error) {
		for some, err := range r.parts(ctx, s) {
			if err != nil || some.Has(at) {
				return some[at.Run], err
			}
		}
		return nil, nil
	})
	if e == nil || err != nil {
		return false, err
	}
	r.kept.found.Add(e)
	return true, nil
}

// has reports whether a thread has a message in its history.
func (r *Resolver) has(ctx context.Context, thread lineage.ThreadID, at lineage.SpanRef) (bool, error) {
	t, err := orNone(r.view.Thread(ctx, thread))
	if t == nil || err != nil {
		return false, err
	}
	reach, err := r.reachOf(ctx, t)
	return err == nil && reach.Has(at), err
}

// threadsAtOnce is the number of threads whose titles or histories are asked for at once.
const threadsAtOnce = 100
