package sealed

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"

	"github.com/lineage-store/lineage/internal/varint"
)

// The directory of a table is its size before compression, a varint, and compressed: the number of
// kinds, and of each kind the number of its ids; the size of all entries; the sections of the kinds,
// and that of the entries. A section is the number of its blocks, and of each block: whether an extent
// begins with it, size, number of entries or ids: varints; CRC-32C (4 bytes); its first id or stored
// key, as bytes shared with the one before, other bytes, and these. Blocks follow each other in the
// extents.

// maxDirectory limits the size of a directory before compression.
const maxDirectory = 1 << 30

// section is consecutive blocks of one kind.
type section struct {
	blocks []blockAt
	firsts [][]byte // least id or stored key of each block
}

type blockAt struct {
	Place
	count int
	sum   uint32
}

// find returns the block that has a key if any does, or -1.
func (s *section) find(key []byte) int {
	return sort.Search(len(s.firsts), func(i int) bool { return string(s.firsts[i]) > string(key) }) - 1
}

// encodeDirectory returns the directory.
func (t *Table) encodeDirectory() []byte {
	b := binary.AppendUvarint(nil, uint64(t.kinds))
	for i := range t.kinds {
		b = binary.AppendUvarint(b, t.counts[i])
	}
	b = binary.AppendUvarint(b, uint64(t.whole))
	last := uint32(0)
	for i := range t.sections {
		b = t.sections[i].append(b, &last)
	}
	return compress(binary.AppendUvarint(nil, uint64(len(b))), b)
}

// append appends a section. last is the extent of the block before, plus 1.
func (s *section) append(b []byte, last *uint32) []byte {
	b = binary.AppendUvarint(b, uint64(len(s.blocks)))
	var before []byte
	for i, at := range s.blocks {
		b = binary.AppendUvarint(b, uint64(at.Extent+1-*last))
		*last = at.Extent + 1
		b = binary.AppendUvarint(b, uint64(at.Length))
		b = binary.AppendUvarint(b, uint64(at.count))
		b = binary.LittleEndian.AppendUint32(b, at.sum)
		first := s.firsts[i]
		shared := 0
		for shared < len(first) && shared < len(before) && first[shared] == before[shared] {
			shared++
		}
		b = binary.AppendUvarint(b, uint64(shared))
		b = binary.AppendUvarint(b, uint64(len(first)-shared))
		b = append(b, first[shared:]...)
		before = first
	}
	return b
}

// Sum is the checksum of a directory, for the owner of the table to keep elsewhere.
func Sum(directory []byte) uint32 { return crc32.Checksum(directory, castagnoli) }

// Open returns the table with a directory that has the given checksum. The directory may be changed
// afterwards.
func Open(shape Shape, directory []byte, sum uint32) (*Table, error) {
	if Sum(directory) != sum {
		return nil, fmt.Errorf("directory: %w", ErrDamaged)
	}
	size, n := binary.Uvarint(directory)
	if n <= 0 || size > maxDirectory {
		return nil, fmt.Errorf("directory: %w", ErrDamaged)
	}
	b, err := expand(directory[n:], int(size))
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	t := newTable(shape)
	v := varint.Reader{Rest: b}
	if v.Size(MaxKinds) != t.kinds {
		return nil, fmt.Errorf("directory: %w", ErrDamaged)
	}
	for i := range t.kinds {
		t.counts[i] = v.Next()
		t.widths[i] = widthOf(t.counts[i] & (1<<48 - 1))
	}
	t.whole = int64(v.AtMost(1 << 62))
	extent, offset := uint32(0), 0
	left := maxDirectory // of the first keys, which share bytes in the directory
	for i := range t.sections {
		if err := t.sections[i].read(&v, &extent, &offset, &left); err != nil {
			return nil, fmt.Errorf("directory: %w", err)
		}
		for _, at := range t.sections[i].blocks {
			t.stored += int64(at.Length)
		}
	}
	if v.Bad || len(v.Rest) > 0 || !t.complete() {
		return nil, fmt.Errorf("directory: %w", ErrDamaged)
	}
	return t, nil
}

// complete reports whether the dictionaries have as many ids as is stated.
func (t *Table) complete() bool {
	for kind := range t.kinds {
		left := t.counts[kind]
		for i, at := range t.sections[kind].blocks {
			if uint64(at.count) > left || len(t.sections[kind].firsts[i]) != idSize || at.count > blockIDs || at.count < blockIDs && uint64(at.count) < left {
				return false
			}
			left -= uint64(at.count)
		}
		if left > 0 {
			return false
		}
	}
	return true
}

func (s *section) read(v *varint.Reader, extent *uint32, offset, left *int) error {
	n := v.Size(len(v.Rest) / 9)
	s.blocks, s.firsts = make([]blockAt, 0, n), make([][]byte, 0, n)
	var before []byte
	for range n {
		if v.Size(1) == 1 {
			*extent, *offset = *extent+1, 0
		}
		at := blockAt{Place: Place{Extent: *extent - 1, Offset: *offset, Length: v.Size(maxBlock)}, count: v.Size(maxBlock)}
		*offset += at.Length
		if len(v.Rest) < 4 || at.count == 0 || at.Length == 0 || *extent == 0 || *offset > maxBlock {
			return ErrDamaged
		}
		at.sum, v.Rest = binary.LittleEndian.Uint32(v.Rest), v.Rest[4:]
		shared, differ := v.Size(len(before)), v.Size(len(v.Rest))
		if *left -= shared + differ; v.Bad || differ > len(v.Rest) || shared > maxKeys || *left < 0 {
			return ErrDamaged
		}
		first := make([]byte, 0, shared+differ)
		first = append(append(first, before[:shared]...), v.Rest[:differ]...)
		v.Rest = v.Rest[differ:]
		if string(first) <= string(before) && len(s.firsts) > 0 {
			return ErrDamaged
		}
		s.blocks, s.firsts = append(s.blocks, at), append(s.firsts, first)
		before = first
	}
	return nil
}
