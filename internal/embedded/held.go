package embedded

import (
	"fmt"
	"iter"
	"sync"

	"github.com/lineage-store/lineage/lineage/backend"
)

// held is a view that outlasts a call, for a snapshot or a sequence. Closing the engine releases it. Close waits for
// reads in progress, but not for the user of the view to finish.
type held struct {
	holds *holds
	mu    sync.RWMutex // held for reading while the view is read
	view  view
	gone  error // why the view was released
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

// take returns a view of the latest state. The caller must release it.
func (l *holds) take(s *store) (*held, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	h := &held{holds: l, view: s.now()}
	l.mu.Lock()
	if l.all == nil {
		l.all = make(map[*held]struct{})
	}
	l.all[h] = struct{}{}
	l.mu.Unlock()
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
	h.holds.mu.Lock()
	delete(h.holds.all, h)
	h.holds.mu.Unlock()
}

// expire releases all held views. The caller makes sure that no new ones are held.
func (l *holds) expire() {
	l.mu.Lock()
	all := make([]*held, 0, len(l.all))
	for h := range l.all {
		all = append(all, h)
	}
	l.mu.Unlock()
	for _, h := range all {
		h.release(errExpired)
	}
}

// reads implements backend.Reader, either on the latest state with a new view
// for each call, or on a snapshot.
type reads struct {
	store *store
	holds *holds
	fixed *held // nil for the latest state
}

// hold returns the view to read and a function that releases it.
func (r *reads) hold() (h *held, letGo func(), err error) {
	if r.fixed != nil {
		return r.fixed, func() {}, nil
	}
	if h, err = r.holds.take(r.store); err != nil {
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
	if err := r.store.begin(); err != nil {
		return none, err
	}
	defer r.store.end()
	v := r.store.now()
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
