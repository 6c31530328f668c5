// Package index is an ordered map of short keys to short values for reads: bbolt for what
// checkpoints have folded, and above it an ordered overlay in memory for later entries. It
// does not depend on what it stores; it is derived from the journal and can be rebuilt.
//
// Everything that is read back is checksummed. In bbolt the entries are in leaves of about a
// kilobyte (see leaf.go), so that an entry costs a few bytes more than its key and value.
package index

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
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
	// Held, if not nil, is called before files are created, renamed or removed. Its error prevents that: the directory
	// may have been replaced by another one.
	Held func() error
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
	system   mappedFiles
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
	spareLater []delayedEntries
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

// dropShared releases the shared view of the latest state. The caller holds mu.
func (db *DB) dropShared() {
	if db.shared != nil {
		db.shared.release()
		db.shared = nil
	}
}

// limits limit the memory of a fold's transaction. rewrite is the least size of used
// pages at which a file is rewritten, and loose that of leaves that are sealed.
type limits struct {
	leaves, bytes int
	rewrite       uint64
	loose         int64
}

var defaultLimits = limits{leaves: 4 << 10, bytes: 8 << 20, loose: minLoose}

// minLoose is the least size of leaves that IsLoose reports.
const minLoose = 8 << 20
