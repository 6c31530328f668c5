package embedded

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// held is a view that outlasts a call: that of a snapshot, or of a sequence that is being
// read. Closing the engine takes it away, and waits only for what is reading it just then,
// not for its user.
type held struct {
	engine *Engine
	mu     sync.RWMutex // held for reading by whoever reads the view
	view   view
	gone   error // why there is nothing to read any more
}

// errExpired ends the reading of a view of an engine that was closed.
var errExpired = fmt.Errorf("store: %w: %w", backend.ErrExpired, backend.ErrClosed)

// errReleased is for the user of a view who let go of it.
var errReleased = fmt.Errorf("snapshot: %w", backend.ErrClosed)

// holds are the views that are held.
type holds struct {
	mu  sync.Mutex
	all map[*held]struct{}
}

// hold returns a view of the latest state, to be released.
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

// release lets go of the view, once nobody reads it. It is safe to repeat.
func (h *held) release(why error) {
	h.mu.Lock()
	if h.gone == nil {
		h.gone = why
		h.view.release()
	}
	h.mu.Unlock()
	h.engine.holds.mu.Lock()
	delete(h.engine.holds.all, h)
	h.engine.holds.mu.Unlock()
}

// expire takes away every view that is held. No other is held any more.
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

// hold returns the view to read, to be let go of after that.
func (r *reads) hold() (h *held, letGo func(), err error) {
	if r.fixed != nil {
		return r.fixed, func() {}, nil
	}
	if h, err = r.engine.hold(); err != nil {
		return nil, nil, err
	}
	return h, func() { h.release(errReleased) }, nil
}

// read answers one question.
func read[T any](r *reads, fn func(view) (T, error)) (T, error) {
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
	defer v.release()
	return fn(v)
}

// sequence yields what a view yields. Nothing keeps the engine from being closed while the
// caller is busy with an element; the sequence then ends with an error.
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

// each yields what a view yields, and returns why the view was taken away if it was.
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

// Head implements backend.Reader.
func (e *Engine) Head(context.Context) (uint64, error) {
	if err := e.begin(); err != nil {
		return 0, err
	}
	defer e.end()
	return e.index.Number(), nil
}

// Context implements backend.Reader. It is the commonest of all reads, and mostly does
// without a view.
func (e *Engine) Context(ctx context.Context, id structure.ContextID) (c backend.Context, err error) {
	if !e.closed.Load() && e.current.context(id, &c) { // no file is needed
		return c, nil
	}
	return e.reads.Context(ctx, id)
}
