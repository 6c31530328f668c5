package sharing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Engine is an open store that other processes may have open as well. It is safe for concurrent
// use.
type Engine struct {
	resume.Sequences

	dir string
	o   Options
	is  fs.FileInfo // the directory

	// now is nil between the loss of a handle and the next one. owner is its engine while this
	// process is the owner, so that its operations cost one look.
	now   atomic.Pointer[handle]
	owner atomic.Pointer[embedded.Engine]
	told  atomic.Bool // Options.Waiting was called
	// gaveWay is when this process last gave the store up as a reader, for one that writes.
	gaveWay atomic.Pointer[time.Time]

	closed atomic.Bool
	ctx    context.Context // ends when the engine is closed
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	search *search
	damage error          // of the last handle
	going  sync.WaitGroup // searches, what watches handles, and handles that are being closed

	sessions sessions
	id       [16]byte
}

// search is the search for the next handle. Operations wait for it together.
type search struct {
	done   chan struct{}
	handle *handle
	err    error
}

var (
	_ backend.Engine     = (*Engine)(nil)
	_ backend.Identified = (*Engine)(nil)
	_ backend.Impaired   = (*Engine)(nil)
	_ backend.Packer     = (*Engine)(nil)
	_ backend.Collector  = (*Engine)(nil)
	_ backend.Copier     = (*Engine)(nil)
	_ backend.Receiver   = (*Engine)(nil)
)

// Open opens the store in a directory, making one if there is none, or connects to the process
// that has it open.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	e := &Engine{dir: dir, o: o}
	e.Sequences.Open = begin(e, func(h *handle) backend.Reader { return h })
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	h, err := e.find(ctx, o.Wait)
	if err != nil {
		return nil, err
	}
	if is, ok := h.Engine.(backend.Identified); ok {
		e.id = is.StoreID()
	}
	if e.is, err = os.Stat(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), h.close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(h)
	return e, nil
}

// Same reports whether two engines have the same directory open.
func Same(a, b backend.Engine) bool {
	x, ok := a.(*Engine)
	y, also := b.(*Engine)
	return ok && also && os.SameFile(x.is, y.is)
}

// set makes a handle the one that operations are done on. The lock is held.
func (e *Engine) set(h *handle) {
	e.damage = nil
	if is, ok := h.Engine.(backend.Impaired); ok {
		e.damage = is.Damage()
	}
	e.now.Store(h)
	e.owner.Store(h.own)
	if h.client != nil {
		e.going.Go(func() { e.succeed(h) })
	}
	if h.reads {
		e.going.Go(func() { e.yieldToWriters(h) })
	}
}

// succeed finds the next owner when that of a guest goes away, also where no operation needs one:
// whatever process is left takes over.
func (e *Engine) succeed(h *handle) {
	<-h.client.Done() // at the latest when the handle is closed
	e.lose(h)
	for s := e.searching(); s != nil; s = e.searching() {
		<-s.done
		if !errors.Is(s.err, backend.ErrLocked) {
			return
		}
	}
}

// Close implements backend.Engine. Guests of this process find another owner.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.cancel(errClosed)
	e.mu.Lock() // no search begins from now on
	h := e.now.Load()
	e.mu.Unlock()
	var err error
	if h != nil {
		err = h.close()
	}
	e.going.Wait()
	return err
}

var errClosed = fmt.Errorf("store: %w", backend.ErrClosed)

// handle returns what operations are done on. It waits for a search as long as a context lasts.
func (e *Engine) handle(ctx context.Context) (*handle, error) {
	for {
		if h := e.now.Load(); h != nil {
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

// searching returns the search that is under way, which it may begin; nil where there is a handle
// or the engine is closed.
func (e *Engine) searching() *search {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now.Load() != nil || e.closed.Load() {
		return nil
	}
	if e.search == nil {
		s := &search{done: make(chan struct{})}
		e.search = s
		e.going.Go(func() { e.run(s) })
	}
	return e.search
}

// run finds the next handle.
func (e *Engine) run(s *search) {
	defer close(s.done)
	h, err := e.find(e.ctx, max(e.o.Wait, patience))
	if err == nil {
		err = e.sameStore(h)
	}
	e.mu.Lock()
	e.search = nil
	late := err == nil && e.closed.Load()
	if err == nil && !late {
		e.set(h)
	}
	e.mu.Unlock()
	switch {
	case late:
		s.err = errors.Join(errClosed, h.close())
	case err != nil:
		s.err = err
		if h != nil {
			_ = h.close()
		}
	default:
		s.handle = h
	}
}

// sameStore refuses another store that has taken the place of the one that was opened.
func (e *Engine) sameStore(h *handle) error {
	if is, ok := h.Engine.(backend.Identified); ok && e.id != [16]byte{} && is.StoreID() != e.id {
		return fmt.Errorf("store %s: another store has taken its place: %w", e.dir, backend.ErrDiverged)
	}
	return nil
}

// lose gives up a handle, so that the next operation finds another.
func (e *Engine) lose(h *handle) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now.Load() != h || e.closed.Load() {
		return
	}
	e.now.Store(nil)
	e.owner.Store(nil)
	e.going.Go(func() { _ = h.close() })
}

// lost reports whether an error says that a handle is of no use any more, so that the operation
// has to be done on another.
func (e *Engine) lost(h *handle, err error) bool {
	if err == nil || e.closed.Load() {
		return false
	}
	if h.own != nil { // this process gave it up meanwhile
		return errors.Is(err, backend.ErrClosed) && e.now.Load() != h
	}
	return errors.Is(err, remote.ErrDisconnected) || errors.Is(err, remote.ErrMoved) ||
		errors.Is(err, backend.ErrClosed) && e.now.Load() != h
}

// failed gives up the engine of an owner that takes no commits any more, because its disk failed
// or a commit panicked: guests, and this process, go on with another.
func (e *Engine) failed(h *handle, err error) {
	if h.own != nil && !h.reads && errors.Is(err, backend.ErrReadOnly) {
		e.lose(h)
	}
}

// do does an operation, on other handles where one is lost. What is done may be done twice.
func do[T any](ctx context.Context, e *Engine, op func(h *handle) (T, error)) (T, error) {
	var none T
	for range mostTries {
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
	return none, fmt.Errorf("store %s: its owners went away %d times: %w", e.dir, mostTries, remote.ErrDisconnected)
}

// read is do for what reads. For an owner it costs one look.
func read[T any](ctx context.Context, e *Engine, op func(r backend.Reader) (T, error)) (T, error) {
	if own := e.owner.Load(); own != nil {
		v, err := op(own)
		if err == nil || !errors.Is(err, backend.ErrClosed) || e.closed.Load() || e.owner.Load() == own {
			return v, err
		}
	}
	return do(ctx, e, func(h *handle) (T, error) { return op(h) })
}

// mostTries is how often an operation is done again.
const mostTries = 100

// Role says which process has the store open, and which use it through that one.
type Role struct {
	Owner  remote.Process
	Guests []remote.Process
	// Owns is set when this handle is the owner.
	Owns bool
}

// Role returns the owner and its guests as they are now.
func (e *Engine) Role(ctx context.Context) (Role, error) {
	return do(ctx, e, func(h *handle) (r Role, err error) {
		if h.own != nil {
			r = Role{Owner: remote.ThisProcess(), Owns: true}
			if h.server != nil {
				r.Guests = h.server.Guests()
			}
			return r, nil
		}
		r.Owner = h.client.Store().Owner
		r.Guests, err = h.client.Guests(ctx)
		return r, err
	})
}

// StoreID implements backend.Identified.
func (e *Engine) StoreID() [16]byte { return e.id }

// Damage implements backend.Impaired. It is that of the store as it was last opened.
func (e *Engine) Damage() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.damage
}
