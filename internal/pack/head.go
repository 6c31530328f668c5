package pack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Each chapter begins with its head: its row of the table, without reference to other rows. So the
// chapters of a pack whose end is missing can be found. A head is
//
//   - the size of what follows up to the checksum, 1 byte
//   - varints: the first commit here that is not the rest of one, less the first of the pack; the number
//     of ids, and of bodies, in the chapters before; the end of the frame that continues in the
//     next chapter, or 0
//   - the row, as the table has it after an empty one
//   - CRC-32C of the store id, the salt, the offset of the head (8 bytes), and all of the above
const (
	minHead = 1 + 4 + 13 + 4
	maxHead = 1 + 255 + 4
)

// headStart returns the checksum of what precedes a head at an offset.
func (h Header) headStart(offset int64) uint32 {
	b := append(append(make([]byte, 0, 28), h.Store[:]...), h.Salt[:]...)
	return crc32.Checksum(binary.LittleEndian.AppendUint64(b, uint64(offset)), castagnoli)
}

// encodeHead returns the head of a chapter. Its offset and the sizes of its parts are known.
func (r *row) encodeHead(h Header) []byte {
	b := make([]byte, 1, 64)
	b = binary.AppendUvarint(b, r.commit-h.FirstCommit)
	b = binary.AppendUvarint(b, uint64(r.id))
	b = binary.AppendUvarint(b, r.body)
	b = binary.AppendUvarint(b, uint64(r.until))
	b = appendRow(b, r, &row{})
	b[0] = byte(len(b) - 1)
	return binary.LittleEndian.AppendUint32(b, crc32.Update(h.headStart(r.offset), castagnoli, b))
}

// decodeHead reads the head at the start of bytes that are at an offset of the pack. It returns
// false if there is none.
func decodeHead(b []byte, offset int64, h Header) (r row, ok bool) {
	if len(b) < minHead || int(b[0]) < minHead-5 || len(b) < int(b[0])+5 {
		return r, false
	}
	end := int(b[0]) + 1
	if crc32.Update(h.headStart(offset), castagnoli, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return r, false
	}
	v := varint.Reader{Rest: b[1:end]}
	commit := h.FirstCommit + v.AtMost(h.LastCommit)
	id, body, until := v.AtMost(1<<32-1), v.AtMost(1<<40), v.AtMost(1<<40)
	err := readRow(&v, &r)
	r.commit, r.id, r.body, r.until = commit, uint32(id), body, int64(until)
	r.offset, r.head = offset, int64(end)+4
	last := commit + uint64(r.commits) - 1
	if err != nil || v.Bad || len(v.Rest) > 0 || last > h.LastCommit || !r.possible(h) {
		return r, false
	}
	r.layOut()
	return r, true
}

// fileEnd returns the offset after the chapter.
func (r *row) fileEnd() int64 { return r.parts[partContent].offset + r.parts[partContent].size }

// checkHeads compares the heads of all chapters with the table.
func (p *File) checkHeads(rows []row) error {
	for i := range rows {
		r := &rows[i]
		is, want := make([]byte, r.head), r.encodeHead(p.Header)
		if err := p.read(is, r.offset); err != nil {
			return err
		}
		right := func(b []byte) bool { return bytes.Equal(b, want) }
		if !right(is) && !p.restore(is, r.offset, right) {
			return p.corrupt(r.offset, "the head of a chapter is damaged")
		}
	}
	return nil
}

// OpenDamaged opens a pack of which only the start may be left. It can only be salvaged.
func OpenDamaged(src io.ReaderAt, size int64, name string, cache *Cache) (*File, error) {
	p, err := Open(src, size, name, cache)
	unhelpful := errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) || errors.Is(err, backend.ErrClosed)
	if err == nil || unhelpful || size < headerSize || size > maxFile {
		return p, err
	}
	p = &File{name: name, src: src, cache: cache, size: size, unfinished: err}
	head := make([]byte, headerSize)
	if err := p.read(head, 0); err != nil {
		return nil, err
	}
	header, headErr := decodeHeader(head)
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
		end = p.foot.offset // only the table is damaged
	}
	p.rows = []row{}
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
	at, commit := int64(headerSize), p.FirstCommit
	for at < end && commit <= p.LastCommit {
		r, err := p.nextHead(at, end, commit)
		if err != nil {
			return append(missing, err)
		}
		if r == nil {
			break
		}
		if r.offset > at {
			lost(at, "no chapter begins in %d bytes", r.offset-at)
		}
		if len(p.rows) == 0 && r.offset != headerSize && !p.Dense {
			lost(headerSize, "the first chapter is damaged, and the others cannot be read without it")
			return missing
		}
		p.rows = append(p.rows, *r)
		at, commit = r.fileEnd(), r.commit+uint64(r.commits)
		if r.until > 0 { // its last commit needs the next chapter
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
func (p *File) nextHead(at, end int64, commit uint64) (*row, error) {
	head := func(b []byte, at int64) *row {
		if r, ok := decodeHead(b, at, p.Header); ok && r.fileEnd() <= end && r.first() >= commit {
			return &r
		}
		return nil
	}
	// Mostly it follows directly.
	b := make([]byte, min(end-at, maxHead))
	if p.read(b, at) == nil {
		if r := head(b, at); r != nil {
			return r, nil
		}
	}
	for size := int64(256); at < end; at, size = at+size, min(4*size, scanSize) {
		b := make([]byte, min(end-at, size+maxHead))
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
