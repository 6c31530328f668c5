package sealed

import (
	"encoding/binary"
	"fmt"

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
