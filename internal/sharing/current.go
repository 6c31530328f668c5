package sharing

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/lineage/backend"
)

// set makes a handle the current one. e.mu must be held.
func (e *Engine) set(h *storeHandle) {
	e.damage = nil
	if i, ok := h.Engine.(backend.Impaired); ok {
		e.damage = i.Damage()
	}
	e.current.Store(h)
	if h.client != nil {
		e.tasks.Go(func() { e.succeed(h) })
	}
	if h.readOnly {
		e.tasks.Go(func() { e.yieldToWriters(h) })
	}
}

// succeed finds the next handle when the owner of a guest exits, even if no operation needs one. So one of the guests
// becomes the owner.
func (e *Engine) succeed(h *storeHandle) {
	<-h.client.Done() // also closed when the handle is closed
	e.lose(h)
	for s := e.searching(); s != nil; s = e.searching() {
		<-s.done
		if !errors.Is(s.err, backend.ErrLocked) {
			return
		}
	}
}

// handle returns the current handle. If there is none, it waits until one is found or the context ends.
func (e *Engine) handle(ctx context.Context) (*storeHandle, error) {
	for {
		if h := e.current.Load(); h != nil {
			return h, nil
		}
		if e.closed.Load() {
			return nil, errClosed
		}
		s := e.searching()
		if s == nil {
			continue
		}
		select {
		case <-s.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		_, limited := ctx.Deadline()
		if s.err == nil {
			return s.handle, nil
		}
		if !limited || !errors.Is(s.err, backend.ErrLocked) {
			return nil, s.err
		}
	}
}

// searching returns the current search. It starts one if there is none. It returns nil if there is a handle or the
// engine is closed.
func (e *Engine) searching() *search {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current.Load() != nil || e.closed.Load() {
		return nil
	}
	if e.search == nil {
		s := &search{done: make(chan struct{})}
		e.search = s
		e.tasks.Go(func() { e.run(s) })
	}
	return e.search
}

// run runs a search.
func (e *Engine) run(s *search) {
	defer close(s.done)
	h, err := e.find(e.ctx, max(e.o.Wait, ownerTimeout))
	if err == nil {
		err = e.sameStore(h)
	}
	e.mu.Lock()
	e.search = nil
	if err == nil && e.closed.Load() {
		err = errClosed
	}
	if err == nil {
		e.set(h)
	}
	e.mu.Unlock()
	if err != nil && h != nil {
		err = errors.Join(err, h.close())
	}
	s.handle, s.err = h, err
}

// sameStore refuses a store other than the one that was opened first.
func (e *Engine) sameStore(h *storeHandle) error {
	if id, ok := h.Engine.(backend.Identified); ok && e.id != [16]byte{} && id.StoreID() != e.id {
		return fmt.Errorf("store %s: another store has taken its place: %w", e.dir, backend.ErrDiverged)
	}
	return nil
}

// do runs an operation. If its handle is lost, it runs the operation again on another handle, so the operation may be
// executed twice.
func do[T any](ctx context.Context, e *Engine, op func(h *storeHandle) (T, error)) (T, error) {
	var none T
	for range maxTries {
		h, err := e.handle(ctx)
		if err != nil {
			return none, err
		}
		v, err := op(h)
		if !e.lost(h, err) {
			return v, err
		}
		e.lose(h)
	}
	return none, fmt.Errorf("store %s: its owners went away %d times: %w", e.dir, maxTries, remote.ErrDisconnected)
}

// read is do for reads. It is faster if this process is the owner.
func read[T any](ctx context.Context, e *Engine, op func(r backend.Reader) (T, error)) (T, error) {
	if h := e.current.Load(); h != nil && h.own != nil {
		v, err := op(h.own)
		if !e.lost(h, err) {
			return v, err
		}
	}
	return do(ctx, e, func(h *storeHandle) (T, error) { return op(h) })
}

// maxTries limits how often an operation is run.
const maxTries = 100
