// Package collect runs the collections of an engine: it marks what is live (package live), hides the rest from new
// commits (Barrier), deletes it from the index (prune), and then from the journal (sweep). From the end of marking until
// the last file is rewritten the collection is pending (File), so that it survives a crash.
package collect

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/semaphore"
	"github.com/lineage-store/lineage/structure"
)

// Store is a store that is being collected.
type Store struct {
	Engine  Engine
	Control *Control
	Journal *journal.Journal
	Index   *index.DB
	Pending File
	Logger  *slog.Logger

	// Write is locked while a commit is applied. It guards the fields below.
	Write  *sync.Mutex
	Counts *keys.Counters // of the index
	Cache  *entries.Cache
}

// Control is what collections and the rest of an engine share.
type Control struct {
	One semaphore.Semaphore // held during a collection

	// Barrier is set while a collection is pending.
	Barrier atomic.Pointer[Barrier]
	// Raised counts the barriers that were raised. What was known before one was raised may be dead.
	Raised atomic.Uint64
	// Collected is set by the first collection of this process. From then on, chunks that were known when a body was
	// split may be gone when its block is stored.
	Collected atomic.Bool

	// Agree is held for writing while the index and the barrier change together. Code that compares the index with the
	// journal holds it for reading while it loads both.
	Agree  sync.RWMutex
	Pruned bool // the index no longer has what the barrier hides

	// Copies is set while files outside the journal may contain what a collection removed. Only the holder of One uses it.
	Copies bool
}

// Engine is what a collection asks of the engine that it runs in.
type Engine interface {
	// Closed returns an error when the store is being closed, which waits for the current step only.
	Closed() error
	// Latest returns the current state of the store. The caller closes it.
	Latest() View
	// Commits yields the commits up to a number, without what a barrier hides; nil hides nothing.
	Commits(until uint64, hidden *Barrier) iter.Seq2[Commit, error]
	// Rebuild returns a second index of the commits up to a number, without what a barrier hides, and a function that
	// removes it. filter is called with each commit before that is added, and may set records to nil.
	Rebuild(until uint64, hidden *Barrier, filter func(Commit) error) (rebuilt *index.Snapshot, remove func(), err error)
	// Hide has readers no longer see dead records that packs still contain; nil shows everything. Write is locked.
	Hide(dead *Barrier)
	// Rewrite rewrites a file of the journal.
	Rewrite(ctx context.Context, file journal.SegmentInfo, filter func(*structure.Commit) error, progress func(done, total int64)) error
	// DropPacked deletes index entries that packs replace. CompactIndex removes deleted entries from the index file.
	DropPacked(ctx context.Context) error
	CompactIndex(ctx context.Context) error
	// RemoveCopies removes files outside journal and index that may contain dead records, and returns their names.
	RemoveCopies(ctx context.Context) (removed []string, err error)
}

// View is a state of a store.
type View struct {
	Index   *index.Snapshot
	Commits live.View
	Close   func()
}

// Commit is a commit with the segment of the journal that has it, and its size there.
type Commit struct {
	*structure.Commit
	Segment uint32
	Size    int64
}
