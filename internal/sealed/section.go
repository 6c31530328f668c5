package sealed

import (
	"encoding/binary"
	"hash/crc32"
	"sort"

	"github.com/lineage-store/lineage/internal/varint"
)

// section is consecutive blocks of one kind.
type section struct {
	blocks []blockAt
	firsts [][]byte // least id or stored key of each block
}

type blockAt struct {
	Location
	count int
	sum   uint32
}

// find returns the block that has a key if any does, or -1.
func (s *section) find(key []byte) int {
	return sort.Search(len(s.firsts), func(i int) bool { return string(s.firsts[i]) > string(key) }) - 1
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

func (s *section) read(v *varint.Reader, extent *uint32, offset, left *int) error {
	n := v.Size(len(v.Rest) / 9)
	s.blocks, s.firsts = make([]blockAt, 0, n), make([][]byte, 0, n)
	var before []byte
	for range n {
		if v.Size(1) == 1 {
			*extent, *offset = *extent+1, 0
		}
		at := blockAt{Location: Location{Extent: *extent - 1, Offset: *offset, Length: v.Size(maxBlock)}, count: v.Size(maxBlock)}
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

// Sum is the checksum of a directory, for the owner of the table to keep elsewhere.
func Sum(directory []byte) uint32 { return crc32.Checksum(directory, castagnoli) }
