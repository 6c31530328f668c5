// Package index is an ordered map of short keys to short values for reads: bbolt for what
// checkpoints have folded, and above it an ordered overlay in memory for later entries. It
// does not depend on what it stores; it is derived from the journal and can be rebuilt.
//
// Everything that is read back is checksummed. In bbolt the entries are in leaves of about a
// kilobyte (see leaf.go), so that an entry costs a few bytes more than its key and value.
package index

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/memtable"
	"github.com/lineage-store/lineage/internal/sealed"
	"github.com/lineage-store/lineage/internal/vfs"
)

// Options configure an index. The zero value of each field is a default.
type Options struct {
	// OverlayBytes is the size of the overlay at which a checkpoint starts in the background.
	// At four times that size, Throttle waits. Default 16 MiB.
	OverlayBytes int64
	// Durable is called before a checkpoint with the number of its last commit. It must
	// return only when that commit is durable: the index must never be ahead of the journal.
	// Nil if everything applied is durable.
	Durable func(number uint64) error
	// Early reports whether an entry may be in the file before the state accounts for it: its
	// key is put once, and replaying the journal over a later state gives the same value. A
	// checkpoint writes early entries in several transactions, to limit memory, and all
	// others in one transaction with the state. Nil means all keys.
	Early func(key []byte) bool
	// Derive, if not nil, is called by each fold and may add entries that follow from the
	// folded ones. Only FirstDerived and LastDerived of a snapshot find them reliably. They
	// must not share a prefix with other entries.
	Derive func(*Folding) error
	// Yield, if not nil, is called by a fold after every few microseconds of work.
	Yield func()
	// Shape describes the ids in entries, for the sealed table. Nil means that there are none.
	Shape sealed.Shape
	// ReadOnly never writes the file.
	ReadOnly bool
	// InMemory has no file: everything stays in the overlay and is lost when the index is
	// closed.
	InMemory bool
	// Logger reports failures in the background; nil discards them.
	Logger *slog.Logger
}

// DB is an open index. Only one goroutine at a time may call Apply; everything else is safe
// for concurrent use.
type DB struct {
	path     string
	opt      Options
	bolt     *bbolt.DB
	file     *os.File // of bbolt
	kept     *file    // the file of new bases
	mapped   int      // size of the address space
	pageSize int      // of a new file; 0 is that of the machine
	limits   limits
	queue    queue

	// Owned by the running fold:
	pages        *pages    // after bbolt's last transaction
	rewriteAfter time.Time // no rewrite before that time, after a failed one
	renamed      bool      // the file was replaced, and its name is not durable yet
	syncDir      func(name string) error

	mu         sync.RWMutex // never held during I/O
	active     *overlay
	frozen     *overlay // being folded, or waiting for it
	base       *base
	shared     *view // the view of the latest state, if one was requested
	state      State
	applied    uint64 // number of batches
	spare      []byte
	spareLater []pending
	scratch    []byte // memory for makers
	sorter     sorter
	folded     uint64 // number of batches in the base
	written    bool   // the file was written to since it was opened
	folding    bool
	foldErr    error
	closed     bool
	idle       sync.Cond // no fold runs; its lock is mu
	// replaced waits for replaced files that are still read; unread is their number.
	replaced sync.WaitGroup
	unread   atomic.Int32
	retryAt  time.Time
	draft    bool // a new file that is useless until it is complete

	pressure atomic.Int64 // bytes of the active overlay
}

// folds reports whether the overlay is ever folded into a file.
func (db *DB) folds() bool { return !db.opt.ReadOnly && !db.opt.InMemory }

// Throttle waits while the overlay is so large that a checkpoint must catch up. It returns
// the checkpoint's error if that is the cause.
func (db *DB) Throttle() error {
	if db.pressure.Load() < 4*db.opt.OverlayBytes {
		return nil
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	if db.closed {
		return errClosed
	}
	for db.active.Bytes() >= 4*db.opt.OverlayBytes && db.folds() {
		db.startFold()
		switch {
		case db.folding:
		case db.closed:
			return errClosed
		default:
			return fmt.Errorf("index checkpoint: %w", db.foldErr)
		}
		db.idle.Wait()
	}
	return nil
}

// Get returns the latest value of a key. The caller must not change it.
func (db *DB) Get(key []byte) (value []byte, ok bool, err error) {
	db.Settle()
	db.mu.RLock()
	if db.closed {
		db.mu.RUnlock()
		return nil, false, errClosed
	}
	value, found := db.active.Latest().Get(key)
	if !found && db.frozen != nil {
		value, found = db.frozen.frozen.Get(key)
	}
	if found || db.base == nil {
		db.mu.RUnlock()
		return value, value != nil, nil
	}
	b := db.base
	b.retain() // it cannot be closed while it is current
	db.mu.RUnlock()
	defer b.release()
	return b.get(key)
}

// dropShared releases the shared view of the latest state. The caller holds mu.
func (db *DB) dropShared() {
	if db.shared != nil {
		db.shared.release()
		db.shared = nil
	}
}

// Close folds the overlay and closes the file. It waits for snapshots, so they must be closed
// first. It may be called twice.
func (db *DB) Close() error {
	var err error
	if db.folds() {
		err = db.Checkpoint()
	}
	db.mu.Lock()
	closed := db.closed
	db.closed = true
	db.pressure.Store(math.MaxInt64) // Throttle checks the details
	db.mu.Unlock()
	if closed {
		return nil
	}
	db.stopQueue()
	db.mu.Lock()
	defer db.mu.Unlock()
	for db.folding {
		db.idle.Wait()
	}
	db.dropShared()
	if db.bolt == nil {
		if db.base != nil {
			db.base.release()
		}
		return err
	}
	release := db.leave()
	db.base.release()
	release()
	db.replaced.Wait()
	if db.written && err == nil {
		if err := writeSums(db.path); err != nil {
			db.opt.Logger.Warn("index checksums are not written", "err", err)
		}
	}
	return err
}

// Size returns the size of the file, or of the memory without a file.
func (db *DB) Size() int64 {
	if db.opt.InMemory {
		db.mu.Lock()
		defer db.mu.Unlock()
		db.settleLocked()
		return db.active.Bytes()
	}
	size, err := vfs.Size(db.path)
	if err != nil {
		return 0
	}
	return size
}

// overlay has entries in memory, including deletions.
type overlay struct {
	*memtable.Table

	// Set when frozen: the commit, the number of batches, and the moment to read. Derived
	// entries are added after the moment.
	state   State
	applied uint64
	frozen  memtable.Moment
}

func newOverlay() *overlay { return &overlay{Table: memtable.New()} }
