package pack

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/lineage/backend"
)

// OpenDamaged opens a pack of which only the start may be left. It can only be salvaged.
func OpenDamaged(src io.ReaderAt, size int64, name string, cache *Cache) (*File, error) {
	p, err := Open(src, size, name, cache)
	unhelpful := errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) || errors.Is(err, backend.ErrClosed)
	if err == nil || unhelpful || size < layout.HeaderSize || size > layout.MaxFile {
		return p, err
	}
	p = &File{mendedFile: mendedFile{name: name, src: src, size: size, unfinished: err}, cache: cache}
	head := make([]byte, layout.HeaderSize)
	if err := p.read(head, 0); err != nil {
		return nil, err
	}
	header, headErr := layout.DecodeHeader(head)
	if headErr != nil {
		return nil, err
	}
	p.Header = header
	return p, nil
}

// scanSize is how much is searched at once for a head. It begins with less, so that many small gaps are
// crossed in a time that is proportional to them.
const scanSize = 1 << 20

// maxGaps is the number of reasons that findChapters returns one by one.
const maxGaps = 1000

// findChapters finds the chapters by their heads instead of the table. It returns what is
// missing.
func (p *File) findChapters() (missing []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.size
	if p.unfinished == nil {
		end = p.foot.TableAt // only the table is damaged
	}
	p.rows = []layout.ChapterRow{}
	more := 0
	lost := func(at int64, what string, arguments ...any) {
		if len(missing) == maxGaps {
			more++
			return
		}
		missing = append(missing, p.corrupt(at, fmt.Sprintf(what, arguments...)))
	}
	defer func() {
		if more > 0 {
			missing = append(missing, p.corrupt(end, fmt.Sprintf("%d further parts are missing or damaged", more)))
		}
	}()
	at, commit := int64(layout.HeaderSize), p.FirstCommit
	for at < end && commit <= p.LastCommit {
		r, err := p.nextHead(at, end, commit)
		if err != nil {
			return append(missing, err)
		}
		if r == nil {
			break
		}
		if r.Offset > at {
			lost(at, "no chapter begins in %d bytes", r.Offset-at)
		}
		if len(p.rows) == 0 && r.Offset != layout.HeaderSize && !p.Dense {
			lost(layout.HeaderSize, "the first chapter is damaged, and the others cannot be read without it")
			return missing
		}
		p.rows = append(p.rows, *r)
		at, commit = r.FileEnd(), r.Commit+uint64(r.Commits)
		if r.Until > 0 { // its last commit needs the next chapter
			commit--
		}
	}
	switch {
	case commit <= p.LastCommit:
		lost(at, "the rest of the pack is missing or damaged, with commits %d to %d", commit, p.LastCommit)
	case p.unfinished != nil:
		lost(at, "the end of the pack is missing or damaged, but no commit")
	}
	return missing
}

// nextHead returns the first chapter at or after an offset that is whole and has nothing from before
// a commit, or nil if there is none.
func (p *File) nextHead(at, end int64, commit uint64) (*layout.ChapterRow, error) {
	head := func(b []byte, at int64) *layout.ChapterRow {
		if r, ok := layout.DecodeHead(b, at, p.Header); ok && r.FileEnd() <= end && r.First() >= commit {
			return &r
		}
		return nil
	}
	// Mostly it follows directly.
	b := make([]byte, min(end-at, layout.MaxHead))
	if p.read(b, at) == nil {
		if r := head(b, at); r != nil {
			return r, nil
		}
	}
	for size := int64(256); at < end; at, size = at+size, min(4*size, scanSize) {
		b := make([]byte, min(end-at, size+layout.MaxHead))
		if err := p.readSectors(b, at); err != nil {
			return nil, err
		}
		for i := range min(len(b), int(size)) {
			if r := head(b[i:], at+int64(i)); r != nil {
				return r, nil
			}
		}
	}
	return nil, nil
}

// readSectors reads bytes, with zeros for sectors that the disk does not return.
func (p *File) readSectors(b []byte, at int64) error {
	err := p.read(b, at)
	if err == nil || errors.Is(err, backend.ErrClosed) {
		return err
	}
	const sector = 4 << 10
	for i := 0; i < len(b); i += sector {
		part := b[i:min(i+sector, len(b))]
		if err := p.read(part, at+int64(i)); err != nil {
			if errors.Is(err, backend.ErrClosed) {
				return err
			}
			clear(part)
		}
	}
	return nil
}

// Salvage yields every readable commit in order. It yields an error before them, or in place of missing ones, for each reason why
// commits are missing.
func (p *File) Salvage() iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		rows, err := p.table()
		if err != nil {
			if p.unfinished == nil && !yield(Frame{}, err) {
				return
			}
			for _, err := range p.findChapters() {
				if !yield(Frame{}, err) {
					return
				}
			}
			rows = p.rows
		}
		for n := range rows {
			if !p.salvageChapter(n, yield) {
				return
			}
		}
	}
}

// salvageChapter yields the commits of a chapter, or why they cannot be read. It reports whether to continue.
func (p *File) salvageChapter(n int, yield func(Frame, error) bool) bool {
	c, err := p.chapter(n)
	if err != nil {
		return yield(Frame{}, err)
	}
	for _, x := range c.commits {
		if x.Rest != nil || x.Open && len(p.continuations(n)) == 0 { // what is missing was said
			continue
		}
		if !yield(p.frame(commitPiece{c, x, n})) {
			return false
		}
	}
	return true
}
