package index

import (
	"math/bits"
	"unsafe"

	"go.etcd.io/bbolt"
)

// pages has the free pages of the file after a transaction. Free pages still
// contain old leaves with valid checksums: a damaged element of a bbolt page
// that points to one must not revive it.
type pages struct {
	size  uint64 // of a page
	end   uint64 // number of the first page that was never used
	free  []uint64
	start uintptr // where the file is mapped
	bytes uintptr // size of the mapping
}

// mapped sets where bbolt has mapped the file.
func (p *pages) mapped(db *bbolt.DB, bytes int) *pages {
	p.start, p.bytes = db.Info().Data, uintptr(bytes)
	return p
}

// inUse returns the size of the file without preallocated space.
func (p *pages) inUse() uint64 { return p.size * p.end }

// used returns the number of pages in use.
func (p *pages) used() uint64 {
	free := 0
	for _, word := range p.free {
		free += bits.OnesCount64(word)
	}
	return p.end - uint64(free)
}

func (p *pages) setFree(id uint64) { p.free[id/64] |= 1 << (id % 64) }

// hold reports whether bytes returned by bbolt are in used pages. Changes of a
// write transaction are not in the file yet and always count as used.
func (p *pages) hold(b []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - p.start
	if len(b) == 0 || at >= p.bytes {
		return true
	}
	for id := uint64(at) / p.size; id <= (uint64(at)+uint64(len(b))-1)/p.size; id++ {
		if id < 2 || id >= p.end || p.free[id/64]&(1<<(id%64)) != 0 {
			return false
		}
	}
	return true
}

// Compact writes a file in small pages if that before had at most smallFile bytes. The fewer bytes a file has, the more
// of them are in pages that are not full; folding into small pages takes longer.
const (
	smallPage = 1 << 10
	smallFile = 4 << 20
)
