package index

import (
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
)

// file is a bbolt file with readers. It is closed after its last base, because bbolt
// cannot be closed while reads end one by one.
type file struct {
	path   string
	bolt   *bbolt.DB
	refs   atomic.Int64 // of its bases and, while it is current, the index
	closed func(error)
	aside  string // its name after it was replaced, empty if it has none

	sealing *sealing // nil without a sealed table
	table   *sealed.Table
}

func newFile(path string, bolt *bbolt.DB) *file {
	f := &file{path: path, bolt: bolt}
	f.refs.Store(1)
	return f
}

func (f *file) release() {
	if f.refs.Add(-1) == 0 {
		// The last reader does not wait for the unmapping.
		go func() { f.closed(f.bolt.Close()) }()
	}
}

// compactSuffix is the suffix of an index that is being rewritten.
const compactSuffix = ".compact"

// tablePages returns the approximate number of pages of the sealed table.
func (f *file) tablePages(size uint64) uint64 {
	if f.table == nil {
		return 0
	}
	stored, _ := f.table.Size()
	return uint64(stored) / size
}
