package pack

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
)

// File is an open pack. It is safe for concurrent use.
type File struct {
	Header
	source
	cache *Cache
	alone codec // for parts without a dictionary
	// proven is set by Prove: the ids of the bodies that were read so far.
	proven []content.ID

	mu         sync.Mutex // held while the table or the dictionary is read
	rows       []row
	identities []identity

	found atomic.Pointer[directory] // nil until it is read

	decoded  atomic.Int64 // number of chapters, for tests
	expanded atomic.Int64 // number of decompressed parts, for tests
}

// Open opens a pack. It reads only the header and footer; the rest is read on demand.
func Open(src io.ReaderAt, size int64, name string, cache *Cache) (*File, error) {
	p := &File{source: source{name: name, src: src}, cache: cache}
	if size < headerSize+tailSize {
		return nil, p.corrupt(0, "is too short for a pack")
	}
	if size > maxFile {
		return nil, p.corrupt(0, fmt.Sprintf("has %d bytes, more than a pack can have", size))
	}
	head, tail := make([]byte, headerSize), make([]byte, tailSize)
	if err := p.read(head, 0); err != nil {
		return nil, err
	}
	if err := p.read(tail, size-tailSize); err != nil {
		return nil, err
	}
	err := p.findFooter(tail, size)
	if err == nil && !p.foot.fits(p.size) {
		err = errTable
	}
	if err == nil && checksum(head) != p.foot.header {
		p.restore(head, 0, func(b []byte) bool { return checksum(b) == p.foot.header })
	}
	header, headErr := decodeHeader(head)
	switch {
	case errors.Is(headErr, backend.ErrNewerFormat), errors.Is(headErr, backend.ErrOlderFormat):
		return nil, fmt.Errorf("%s: %w", name, headErr)
	case headErr != nil:
		return nil, p.corrupt(0, headErr.Error())
	case err == nil && checksum(head) != p.foot.header:
		err = errors.New("header and footer do not belong together")
	}
	if err != nil {
		return nil, p.corrupt(size-footerSize, err.Error())
	}
	p.Header = header
	return p, nil
}

// Forget drops everything decoded from the pack from its cache.
func (p *File) Forget() { p.cache.forget(&p.source) }

// Name returns the file's path.
func (p *File) Name() string { return p.name }

// table returns the rows of all chapters.
func (p *File) table() ([]row, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tableLocked()
}

func (p *File) tableLocked() ([]row, error) {
	if p.rows != nil {
		return p.rows, nil
	}
	if p.unfinished != nil {
		return nil, p.unfinished
	}
	b := make([]byte, p.foot.length)
	if err := p.read(b, p.foot.offset); err != nil {
		return nil, err
	}
	right := func(b []byte) bool { return checksum(b) == p.foot.sum }
	if !right(b) && !p.restore(b, p.foot.offset, right) {
		return nil, p.corrupt(p.foot.offset, "checksum of the table does not match")
	}
	identities, b, err := readIdentities(b, p.Header)
	if err != nil {
		return nil, p.corrupt(p.foot.offset, err.Error())
	}
	rows, err := readTable(b, p.Header, p.foot.offset)
	if err != nil {
		return nil, p.corrupt(p.foot.offset, err.Error())
	}
	p.rows, p.identities = rows, identities
	return rows, nil
}

// Objects returns how many ids and bodies the pack has.
func (p *File) Objects() (uint64, error) {
	rows, err := p.table()
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	last := &rows[len(rows)-1]
	return uint64(last.id) + uint64(last.ids) + last.body + last.bodies, nil
}
