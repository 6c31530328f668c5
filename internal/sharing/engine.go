package sharing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/remote"
	"github.com/lineage-store/lineage/internal/requests"
	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Engine is a store that other processes may use at the same time. It is safe for concurrent use.
type Engine struct {
	resume.Sequences

	dir     string
	o       Options
	dirInfo fs.FileInfo

	current         atomic.Pointer[storeHandle] // nil after a handle is lost, until the next one is found
	waitingReported atomic.Bool                 // Options.Waiting was called already
	// yieldedAt is the time at which this process, as a reader, last closed the store to let a writer in.
	yieldedAt atomic.Pointer[time.Time]

	closed atomic.Bool
	ctx    context.Context // cancelled when the engine is closed
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	search *search
	damage error          // damage reported by the last handle
	tasks  sync.WaitGroup // goroutines of this engine

	// sessions number the commits of a guest, so that each is applied once. The owner forgets old sessions by itself. A guest
	// does not ask for that when it closes: an engine can tell a new session from a forgotten one only until it forgets a
	// session that started later.
	sessions requests.Sessions
	id       [16]byte // zero if the engine has none
}

// search is a search for the next handle. All operations that need a handle wait for the same search.
type search struct {
	done   chan struct{}
	handle *storeHandle
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

var errClosed = fmt.Errorf("store: %w", backend.ErrClosed)

// lose closes the current handle, so that the next operation finds another one.
func (e *Engine) lose(h *storeHandle) {
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
func (e *Engine) lost(h *storeHandle, err error) bool {
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
func (e *Engine) loseFailed(h *storeHandle, err error) {
	if h.own != nil && !h.readOnly && errors.Is(err, backend.ErrReadOnly) {
		e.lose(h)
	}
}
