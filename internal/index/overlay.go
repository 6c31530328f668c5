package index

import "github.com/lineage-store/lineage/internal/memtable"

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
