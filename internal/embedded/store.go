package embedded

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

// store is what reads need of an engine: its open files, and caches of what was read from them.
type store struct {
	opt     Options
	dir     directory
	journal *journal.Journal
	index   *index.DB
	// pinned, if not nil, are the files that a verification reads instead of the current ones.
	pinned *journal.FileSet
	// damage is why a read-only store cannot be read to its end.
	damage error

	// packs are the packs below the index. It is replaced with the write lock held, or when no
	// other goroutine has the store.
	packs      atomic.Pointer[packLayer]
	collecting collect.Control
	cache      *entries.Cache // its writer is the holder of the write lock
	frames     read.FrameCache

	// files is held for reading during calls, which use the files. Close locks it forever, and
	// then releases the held views.
	files  sync.RWMutex
	closed atomic.Bool
}

// begin keeps the files open until end. It does not block.
func (s *store) begin() error {
	if !s.files.TryRLock() { // Close has locked it or waits for it
		return fmt.Errorf("store: %w", backend.ErrClosed)
	}
	return nil
}

func (s *store) end() { s.files.RUnlock() }
