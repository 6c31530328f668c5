// Package pack stores sealed segments of the journal compactly. A pack is an immutable
// file that replaces one or several consecutive segments. It has the same commits at the
// same positions, with everything but the bodies coded field by field.
//
// A pack consists of chapters. A chapter has consecutive records in three parts: new ids;
// columns of fields; bodies and texts. A commit with more records than fit continues in
// the next chapter. In a dense pack, chapters are large and compressed independently. In
// other packs they are small, and the content of the first chapter is the dictionary of
// all others, so that reading a message takes two chapters.
//
// A File reads frames, objects, spans and what Find and Run look up; Salvage reads what is left of a damaged one. A
// Writer writes a pack, also from the frames of other packs, and proves that it reads back. Below are the layout of
// the file, the columns of records, the lookup tables and the compression.
package pack

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/compress"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/lineage/backend"
)

// File is an open pack. It is safe for concurrent use.
type File struct {
	layout.Header
	mendedFile
	cache *Cache
	alone compress.Codec // for parts without a dictionary
	// proven is set by Prove: the ids of the bodies that were read so far.
	proven []content.ID

	mu         sync.Mutex // held while the table or the dictionary is read
	rows       []layout.ChapterRow
	identities []layout.Identity

	found atomic.Pointer[lookup.Directory] // nil until it is read

	decoded  atomic.Int64 // number of chapters, for tests
	expanded atomic.Int64 // number of decompressed parts, for tests
}

// Open opens a pack. It reads only the header and footer; the rest is read on demand.
func Open(src io.ReaderAt, size int64, name string, cache *Cache) (*File, error) {
	p := &File{mendedFile: mendedFile{name: name, src: src}, cache: cache}
	if size < layout.HeaderSize+layout.TailSize {
		return nil, p.corrupt(0, "is too short for a pack")
	}
	if size > layout.MaxFile {
		return nil, p.corrupt(0, fmt.Sprintf("has %d bytes, more than a pack can have", size))
	}
	head, tail := make([]byte, layout.HeaderSize), make([]byte, layout.TailSize)
	if err := p.read(head, 0); err != nil {
		return nil, err
	}
	if err := p.read(tail, size-layout.TailSize); err != nil {
		return nil, err
	}
	err := p.findFooter(tail, size)
	if err == nil && !p.foot.Fits(p.size) {
		err = layout.ErrTable
	}
	if err == nil && layout.Sum(head) != p.foot.HeaderSum {
		p.restore(head, 0, func(b []byte) bool { return layout.Sum(b) == p.foot.HeaderSum })
	}
	header, headErr := layout.DecodeHeader(head)
	switch {
	case errors.Is(headErr, backend.ErrNewerFormat), errors.Is(headErr, backend.ErrOlderFormat):
		return nil, fmt.Errorf("%s: %w", name, headErr)
	case headErr != nil:
		return nil, p.corrupt(0, headErr.Error())
	case err == nil && layout.Sum(head) != p.foot.HeaderSum:
		err = errors.New("header and footer do not belong together")
	}
	if err != nil {
		return nil, p.corrupt(size-layout.FooterSize, err.Error())
	}
	p.Header = header
	return p, nil
}

// Forget drops everything decoded from the pack from its cache.
func (p *File) Forget() { p.cache.forget(&p.mendedFile) }

// table returns the rows of all chapters.
func (p *File) table() ([]layout.ChapterRow, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tableLocked()
}

func (p *File) tableLocked() ([]layout.ChapterRow, error) {
	if p.rows != nil {
		return p.rows, nil
	}
	if p.unfinished != nil {
		return nil, p.unfinished
	}
	b := make([]byte, p.foot.TableSize)
	if err := p.read(b, p.foot.TableAt); err != nil {
		return nil, err
	}
	matches := func(b []byte) bool { return layout.Sum(b) == p.foot.TableSum }
	if !matches(b) && !p.restore(b, p.foot.TableAt, matches) {
		return nil, p.corrupt(p.foot.TableAt, "checksum of the table does not match")
	}
	identities, b, err := layout.ReadIdentities(b, p.Header)
	if err != nil {
		return nil, p.corrupt(p.foot.TableAt, err.Error())
	}
	rows, err := layout.ReadTable(b, p.Header, p.foot.TableAt)
	if err != nil {
		return nil, p.corrupt(p.foot.TableAt, err.Error())
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
	return uint64(last.ID) + uint64(last.IDs) + last.Body + last.Bodies, nil
}
