package embedded

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// held is a view that outlasts a call, for a snapshot or a sequence. Closing the engine releases it. Close waits for
// reads in progress, but not for the user of the view to finish.
type held struct {
	engine *Engine
	mu     sync.RWMutex // held for reading while the view is read
	view   view
	gone   error // why the view was released
}

// errExpired ends reads of a view after the engine was closed.
var errExpired = fmt.Errorf("store: %w: %w", backend.ErrExpired, backend.ErrClosed)

// errReleased is returned for a view that the caller released.
var errReleased = fmt.Errorf("snapshot: %w", backend.ErrClosed)

// holds are the held views.
type holds struct {
	mu  sync.Mutex
	all map[*held]struct{}
}

// hold returns a view of the latest state. The caller must release it.
func (e *Engine) hold() (*held, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.end()
	h := &held{engine: e, view: e.now()}
	e.holds.mu.Lock()
	if e.holds.all == nil {
		e.holds.all = make(map[*held]struct{})
	}
	e.holds.all[h] = struct{}{}
	e.holds.mu.Unlock()
	return h, nil
}

// release releases the view after reads in progress. It may be called twice.
func (h *held) release(why error) {
	h.mu.Lock()
	if h.gone == nil {
		h.gone = why
		h.view.Close()
	}
	h.mu.Unlock()
	h.engine.holds.mu.Lock()
	delete(h.engine.holds.all, h)
	h.engine.holds.mu.Unlock()
}

// expire releases all held views. The caller makes sure that no new ones are held.
func (e *Engine) expire() {
	e.holds.mu.Lock()
	all := make([]*held, 0, len(e.holds.all))
	for h := range e.holds.all {
		all = append(all, h)
	}
	e.holds.mu.Unlock()
	for _, h := range all {
		h.release(errExpired)
	}
}

// hold returns the view to read and a function that releases it.
func (r *reads) hold() (h *held, letGo func(), err error) {
	if r.fixed != nil {
		return r.fixed, func() {}, nil
	}
	if h, err = r.engine.hold(); err != nil {
		return nil, nil, err
	}
	return h, func() { h.release(errReleased) }, nil
}

// answer answers one query.
func answer[T any](r *reads, fn func(view) (T, error)) (T, error) {
	var none T
	if h := r.fixed; h != nil {
		h.mu.RLock()
		defer h.mu.RUnlock()
		if h.gone != nil {
			return none, h.gone
		}
		return fn(h.view)
	}
	if err := r.engine.begin(); err != nil {
		return none, err
	}
	defer r.engine.end()
	v := r.engine.now()
	defer v.Close()
	return fn(v)
}

// sequence yields the elements of a sequence of a view. The engine can be closed while the
// caller handles an element; the sequence then ends with an error.
func sequence[T any](r *reads, fn func(view) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		h, letGo, err := r.hold()
		if err == nil {
			defer letGo()
			err = each(h, fn, yield)
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// each yields the elements of a sequence of a view. It returns an error if the view was
// released meanwhile.
func each[T any](h *held, fn func(view) iter.Seq2[T, error], yield func(T, error) bool) error {
	h.mu.RLock()
	reading := true
	defer func() {
		if reading {
			h.mu.RUnlock()
		}
	}()
	if h.gone != nil {
		return h.gone
	}
	for value, err := range fn(h.view) {
		h.mu.RUnlock()
		reading = false
		more := yield(value, err)
		h.mu.RLock()
		reading = true
		if !more {
			return nil
		}
		if h.gone != nil {
			return h.gone
		}
	}
	return nil
}

// Recent implements backend.Engine.
func (e *Engine) Recent() backend.Reader { return e }

// Head implements backend.Reader.
func (e *Engine) Head(context.Context) (backend.Cursor, error) {
	if err := e.begin(); err != nil {
		return backend.Cursor{}, err
	}
	defer e.end()
	return read.CursorOf(e.index.State()), nil
}

// Context implements backend.Reader. It is the most frequent read, and usually served from
// the cache.
func (e *Engine) Context(ctx context.Context, id structure.ContextID) (c backend.Context, err error) {
	if !e.closed.Load() && e.cache.Context(id, &c) { // no file is needed
		return c, nil
	}
	return e.reads.Context(ctx, id)
}
