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

	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Engine is a store that other processes may use at the same time. It is safe for concurrent use.
type Engine struct {
	resume.Sequences

	dir     string
	o       Options
	dirInfo fs.FileInfo

	current         atomic.Pointer[handle] // nil after a handle is lost, until the next one is found
	waitingReported atomic.Bool            // Options.Waiting was called already
	// yieldedAt is the time at which this process, as a reader, last closed the store to let a writer in.
	yieldedAt atomic.Pointer[time.Time]

	closed atomic.Bool
	ctx    context.Context // cancelled when the engine is closed
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	search *search
	damage error          // damage reported by the last handle
	tasks  sync.WaitGroup // goroutines of this engine

	sessions sessions
	id       [16]byte // zero if the engine has none
}

// search is a search for the next handle. All operations that need a handle wait for the same search.
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

// Open opens or creates the store in a directory, or connects to the process that has it open.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	e := &Engine{dir: dir, o: o}
	e.Sequences.Open = begin(e, func(h *handle) backend.Reader { return h })
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	h, err := e.find(ctx, o.Wait)
	if err != nil {
		return nil, err
	}
	if id, ok := h.Engine.(backend.Identified); ok {
		e.id = id.StoreID()
	}
	if e.dirInfo, err = os.Stat(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), h.close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.set(h)
	return e, nil
}

// SameStore reports whether another engine has the same directory open.
func (e *Engine) SameStore(other backend.Engine) bool {
	o, ok := other.(*Engine)
	return ok && os.SameFile(e.dirInfo, o.dirInfo)
}

// set makes a handle the current one. e.mu must be held.
func (e *Engine) set(h *handle) {
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
func (e *Engine) succeed(h *handle) {
	<-h.client.Done() // also closed when the handle is closed
	e.lose(h)
	for s := e.searching(); s != nil; s = e.searching() {
		<-s.done
		if !errors.Is(s.err, backend.ErrLocked) {
			return
		}
	}
}

// Close implements backend.Engine. If this process is the owner, one of its guests becomes the owner.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.cancel(errClosed)
	e.mu.Lock() // no search can start after this
	h := e.current.Load()
	e.mu.Unlock()
	var err error
	if h != nil {
		err = h.close()
	}
	e.tasks.Wait()
	return err
}

var errClosed = fmt.Errorf("store: %w", backend.ErrClosed)

// handle returns the current handle. If there is none, it waits until one is found or the context ends.
func (e *Engine) handle(ctx context.Context) (*handle, error) {
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
func (e *Engine) sameStore(h *handle) error {
	if id, ok := h.Engine.(backend.Identified); ok && e.id != [16]byte{} && id.StoreID() != e.id {
		return fmt.Errorf("store %s: another store has taken its place: %w", e.dir, backend.ErrDiverged)
	}
	return nil
}

// lose closes the current handle, so that the next operation finds another one.
func (e *Engine) lose(h *handle) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current.Load() != h || e.closed.Load() {
		return
	}
	e.current.Store(nil)
	e.tasks.Go(func() { _ = h.close() })
}

// lost reports whether an operation failed because its handle is closed or the owner is gone. The operation must then
// be repeated on another handle.
func (e *Engine) lost(h *handle, err error) bool {
	if err == nil || e.closed.Load() {
		return false
	}
	if h.own != nil {
		return errors.Is(err, backend.ErrClosed) && e.current.Load() != h
	}
	return errors.Is(err, remote.ErrDisconnected) || errors.Is(err, remote.ErrMoved) ||
		errors.Is(err, backend.ErrClosed) && e.current.Load() != h
}

// loseFailed drops the handle of an owner whose engine accepts no more commits, because the disk failed or a commit
// panicked. The store is then opened again, by this process or a guest.
func (e *Engine) loseFailed(h *handle, err error) {
	if h.own != nil && !h.readOnly && errors.Is(err, backend.ErrReadOnly) {
		e.lose(h)
	}
}

// do runs an operation. If its handle is lost, it runs the operation again on another handle, so the operation may be
// executed twice.
func do[T any](ctx context.Context, e *Engine, op func(h *handle) (T, error)) (T, error) {
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
	return do(ctx, e, func(h *handle) (T, error) { return op(h) })
}

// maxTries limits how often an operation is run.
const maxTries = 100

// Role describes the process that has the store open, and the processes that use it through that process.
type Role struct {
	Owner  remote.Process
	Guests []remote.Process
	// Owns is set when this handle is the owner.
	Owns bool
}

// Role returns the current owner and its guests.
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

// Damage implements backend.Impaired. It returns the damage found when the store was last opened.
func (e *Engine) Damage() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.damage
}
