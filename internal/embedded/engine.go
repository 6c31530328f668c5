// Package embedded is the storage engine that runs inside a process on a local
// directory: the journal as truth, the index for reads, and a lock that keeps
// other processes out. It implements the port of package backend.
//
// Engine joins what these files have:
//
//   - directory, lock, open, replay: the files of a store, and the index brought up to date;
//   - apply, queue, publish: a commit is checked, written, and made visible; source is the state that it is checked
//     against, absent what needs no lookup for that, requests and sessions what was applied before;
//   - held, reads, catalog, feed: reads. A catalog is the index as of one commit with the packs below it (packed);
//   - pack, pack_plan, pack_schedule: how, which and when segments are packed; packed_index: what the index leaves to packs;
//   - collect: what collections (package collect) need of the engine, and opening a store in which one is pending;
//   - verify, backup, restore, salvage.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	reads // of the current state

	opt     Options
	dir     directory
	lock    *dirLock
	journal *journal.Journal
	index   *index.DB
	// damage is why a read-only store cannot be read to its end.
	damage error
	// rebuilt is set if the index was rebuilt from packs, so that its entries are in no sealed table.
	rebuilt bool

	submissions sync.Pool
	queue       commitQueue
	arrivals    arrivals

	// write serializes commits. It guards the fields up to absent. committing is set while a
	// commit is being applied, and stays set if it panics.
	write      sync.Mutex
	committing bool
	counts     keys.Counters
	state      entries.State
	judge      judge.Judge
	builder    entries.Builder
	id, since  uint64 // the id of the last commit, and the first commit with that id
	own        uint64 // the id of commits made by this process
	sessions   sessions
	absent     absent
	cache      *entries.Cache // its writer is the holder of the write lock
	frames     read.FrameCache

	// packs are the packs below the index. It is replaced with the write lock held, or when no
	// other goroutine has the store.
	packs atomic.Pointer[packLayer]
	// packing is held while files of the journal are replaced, or must not be.
	packing sync.Mutex
	// unmergeable has the names of packs that could not be read. packing is held.
	unmergeable map[string]bool
	schedule    packSchedule

	collecting collect.State

	// files is held for reading during calls, which use the files. Close locks it forever, and
	// then releases the held views.
	files  sync.RWMutex
	holds  holds
	closed atomic.Bool
}

var (
	_ backend.Engine   = (*Engine)(nil)
	_ backend.Impaired = (*Engine)(nil)
)

// Open opens the store in dir, and creates it if there is none.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	where := dir
	if o.InMemory {
		dir, where = "", "in memory"
	}
	e := newEngine(dir, o.withDefaults())
	e.submissions.New = func() any { return new(submission) }
	if err := e.open(ctx); err != nil {
		e.release()
		return nil, fmt.Errorf("open store %s: %w", where, err)
	}
	return e, nil
}

func newEngine(dir string, o Options) *Engine {
	e := &Engine{
		dir:         directory{path: dir, fs: o.FS, inMemory: o.InMemory, readOnly: o.ReadOnly},
		opt:         o,
		sessions:    newSessions(),
		cache:       entries.NewCache(),
		unmergeable: map[string]bool{},
	}
	e.reads.engine = e
	e.state.Source, e.state.Cache = (*source)(e), e.cache
	e.setPacks(0, 0, nil)
	e.queue.write, e.queue.sync = e.commitAll, func(last uint64) error { return e.journal.Sync(last) }
	e.schedule.opt, e.schedule.pack, e.schedule.begin, e.schedule.end = &e.opt, e.packSealed, e.begin, e.end
	e.schedule.ctx, e.schedule.cancel = context.WithCancelCause(context.Background())
	return e
}

// Damage implements backend.Impaired.
func (e *Engine) Damage() error { return e.damage }

// Close implements backend.Engine. It waits for calls, but not for users of snapshots or
// sequences: these get errExpired.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.schedule.stop()
	e.arrivals.announce()
	e.files.Lock()
	e.schedule.wait.Wait()
	e.expire()
	return e.release()
}

// release closes everything that was opened. It is not an error if the index cannot be folded,
// for example on a full disk: it is updated or rebuilt when the store is opened again.
func (e *Engine) release() error {
	var errs []error
	spare := e.indexIsSpare()
	if e.rebuilt && !spare && e.isSmall() {
		if err := e.compactIndex(context.Background()); err != nil {
			e.opt.Logger.Warn("index takes more space until the store is packed", "err", err)
		}
	}
	if e.index != nil {
		if err := e.index.Close(); err != nil {
			e.opt.Logger.Warn("index stays behind until the store is opened again", "err", err)
			spare = false
		}
	}
	if spare {
		if err := e.removeSpare(); err != nil {
			e.opt.Logger.Warn("index and lookup tables of a dense store are kept", "err", err)
		}
	}
	if e.journal != nil {
		errs = append(errs, e.journal.Close())
	}
	if e.lock != nil {
		if e.opt.Unlocking != nil {
			e.opt.Unlocking()
		}
		errs = append(errs, e.lock.release())
	}
	return errors.Join(errs...)
}

// begin keeps the files open until end. It does not block.
func (e *Engine) begin() error {
	if !e.files.TryRLock() { // Close has locked it or waits for it
		return fmt.Errorf("store: %w", backend.ErrClosed)
	}
	return nil
}

func (e *Engine) end() { e.files.RUnlock() }

// Sync implements backend.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	return e.journal.Sync(e.journal.Last())
}

// DropCaches empties all caches of read and decoded data, to measure cold reads. It keeps the index, and the table
// and first chapter of each pack.
func (e *Engine) DropCaches() {
	e.journal.DropCache()
	e.frames.Clear()
	e.packs.Load().places.Clear()
	e.write.Lock()
	defer e.write.Unlock()
	e.cache.Forget()
}

// StoreID implements backend.Identified.
func (e *Engine) StoreID() [16]byte { return e.journal.StoreID() }
