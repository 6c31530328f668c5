package index

import (
	"math/bits"
	"unsafe"

	"go.etcd.io/bbolt"
)

// pages tells which pages of the file hold nothing after one transaction. Free
// pages still hold leaves of the past, whole and with valid checksums: a damaged
// element of a bbolt page that points into one must not bring them back.
type pages struct {
	size  uint64 // of a page
	end   uint64 // number of the first page that was never used
	free  []uint64
	start uintptr // where the file is mapped
	bytes uintptr // how much is mapped
}

// mapped binds the pages to where bbolt has mapped the file.
func (p *pages) mapped(db *bbolt.DB, bytes int) *pages {
	p.start, p.bytes = db.Info().Data, uintptr(bytes)
	return p
}

// inUse returns how long the file is without what was only set aside.
func (p *pages) inUse() uint64 { return p.size * p.end }

// used returns how many pages hold something.
func (p *pages) used() uint64 {
	free := 0
	for _, word := range p.free {
		free += bits.OnesCount64(word)
	}
	return p.end - uint64(free)
}

func (p *pages) setFree(id uint64) { p.free[id/64] |= 1 << (id % 64) }

// hold reports whether bytes that bbolt returned lie in pages in use. What a
// write transaction has changed is not in the file yet and always is.
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
