package postgres

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/resume"
	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/postgres/internal/searchindex"
	"github.com/lineage-store/lineage/structure"
)

// Options configure an engine. Store is required, and the zero value of each other field is a
// default.
type Options struct {
	// Store names the store in the database.
	Store string
	// Durability of commits that ask for none. Default Full.
	Durability backend.Durability
	// CacheBytes limits the memory of the caches. Default DefaultCache.
	CacheBytes int
	// MustExist refuses to create a store.
	MustExist bool
	// ID is the id of a new store; random when zero.
	ID structure.StoreID
	// Unsafe accepts a server with fsync=off, which loses acknowledged commits when its machine
	// stops. It is for tests.
	Unsafe bool
	// Distribute lets an extension of the server, Citus, distribute the tables over servers by store, if they are not yet.
	Distribute bool
	// Progress, when not nil, is called while the store of an earlier version is prepared, with the
	// commits done and to do.
	Progress func(done, total int64)
	// Logger reports repairs; nil discards them.
	Logger *slog.Logger
}

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	// These read the latest state.
	reads
	resume.Sequences

	log    *log
	o      Options
	shared bool // the pool is the caller's to close

	queue   queue
	ctx     context.Context // ends when the engine is closed
	cancel  context.CancelCauseFunc
	going   sync.WaitGroup
	stopped chan struct{} // closed when no more commits are taken
	closed  atomic.Bool
	calls   sync.Mutex // held while a call begins, and while Close does

	// writing is held while commits are judged and written. It guards the fields up to contended.
	writing sync.Mutex
	judging *judging
	// judgedIn identifies the history whose contexts and runs the cache of judging has, and head the state of that cache.
	judgedIn *cache
	head     head
	warm     *stateReader // the reader of that state, if this process wrote last
	// contended is the number of the next batches that lock the store before they are judged, because other processes write.
	contended int

	cache atomic.Pointer[cache]

	search    *searchindex.Index
	searching semaphore.Semaphore // the connections for searches, which may take long; commits find others free

	collecting sync.Mutex // one collection of this process at a time

	changed   changed
	answering answering
	pruning   struct {
		busy      chan struct{} // has room for one
		forbidden bool          // the role may not; writing is held
	}
}

var (
	_ backend.Engine     = (*Engine)(nil)
	_ backend.Identified = (*Engine)(nil)
)

// StoreID implements backend.Identified.
func (e *Engine) StoreID() [16]byte { return e.log.identity }

// Close implements backend.Engine.
func (e *Engine) Close() error {
	e.calls.Lock() // none begins from now on
	closed := e.closed.Swap(true)
	e.calls.Unlock()
	if closed {
		return nil
	}
	e.cancel(errClosed)
	e.changed.announce()
	<-e.stopped
	e.going.Wait()
	e.writing.Lock() // waits for a batch or a collection
	defer e.writing.Unlock()
	if !e.shared {
		e.log.pool.Close()
	}
	return nil
}

// begin keeps Close waiting until e.going.Done.
func (e *Engine) begin() error {
	e.calls.Lock()
	defer e.calls.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	e.going.Add(1)
	return nil
}

// ended returns errClosed for the error of a call that Close ended.
func (e *Engine) ended(err error) error {
	if err != nil && e.closed.Load() {
		return errClosed
	}
	return err
}

// Distant implements backend.Distant.
func (e *Engine) Distant() bool { return true }
