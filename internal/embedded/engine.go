// Package embedded is the storage engine that runs inside a process on a local
// directory: the journal as truth, the index for reads, and a lock that keeps
// other processes out. It implements the port of package backend.
//
// Engine joins what these files have, from the bottom up:
//
//   - directory, lock, store: the files of a store while it is open;
//   - catalog, frames, feed, held, reads: reads. A catalog is the index as of one commit with the packs below it (packed);
//   - submission, queue, apply, publish: a commit is checked, written, and made visible; latestState is the state that it is
//     checked against, absent what needs no lookup for that, requests and sessions what was applied before;
//   - pack, pack_plan, pack_schedule: how, which and when segments are packed; packed_index: what the index leaves to packs;
//   - collect: what collections (package collect) need of the engine;
//   - open, replay: the index is brought up to date, and a pending collection is found;
//   - verify, backup, restore, salvage.
package embedded

import (
	"context"
	"sync"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Engine is an open store. It is safe for concurrent use.
type Engine struct {
	store
	reads // of the current state
	holds holds
	lock  *dirLock
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

	// packing is held while files of the journal are replaced, or must not be.
	packing semaphore.Semaphore
	// unmergeable has the names of packs that could not be read. packing is held.
	unmergeable map[string]bool
	schedule    packSchedule
}

var (
	_ backend.Engine   = (*Engine)(nil)
	_ backend.Impaired = (*Engine)(nil)
)

// Damage implements backend.Impaired.
func (e *Engine) Damage() error { return e.damage }

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

// InPlace returns an error if the directory that was locked is no longer at its path.
func (e *Engine) InPlace() error { return e.dir.held() }
