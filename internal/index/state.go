package index

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"
)

// stateVersion is incremented when an index of an older program cannot be used: it is
// then rebuilt.
const stateVersion = 13

// stateSize is the length of a state on disk, integers little-endian: version 4,
// store 16, number 8, id 8, since 8, segment 4, offset 8, counts 12 × 8, 1 if there is a sealed
// table 1, CRC-32C of its directory 4, CRC-32C 4 bytes.
const stateSize = 65 + 8*len(Counts{})

// save saves the state, and which sealed table is in the file.
func (s State) save(tx *bbolt.Tx, table *sealing) error {
	b := make([]byte, 0, stateSize)
	b = binary.LittleEndian.AppendUint32(b, stateVersion)
	b = append(b, s.Store[:]...)
	b = binary.LittleEndian.AppendUint64(b, s.Number)
	b = binary.LittleEndian.AppendUint64(b, s.ID)
	b = binary.LittleEndian.AppendUint64(b, s.Since)
	b = binary.LittleEndian.AppendUint32(b, s.Segment)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Offset))
	for _, n := range s.Counts {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = table.append(b)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return tx.Bucket(metaBucket).Put(stateKey, b)
}

// load loads the state. The table is nil if there is none.
func (s *State) load(tx *bbolt.Tx) (table *sealing, err error) {
	meta := tx.Bucket(metaBucket)
	if meta == nil || tx.Bucket(leavesBucket) == nil {
		return nil, fmt.Errorf("%w: not an index", ErrUnusable)
	}
	b := meta.Get(stateKey)
	n := len(b) - 4
	if n < 4 || crc32.Checksum(b[:n], castagnoli) != binary.LittleEndian.Uint32(b[n:]) {
		return nil, fmt.Errorf("%w: its state is damaged", ErrUnusable)
	}
	if v := binary.LittleEndian.Uint32(b); v != stateVersion || len(b) != stateSize {
		return nil, fmt.Errorf("%w: version %d, this program uses %d", ErrUnusable, v, stateVersion)
	}
	if tx.Bucket(sealedBucket) == nil {
		return nil, fmt.Errorf("%w: it has no place for sealed entries", ErrUnusable)
	}
	copy(s.Store[:], b[4:])
	s.Number = binary.LittleEndian.Uint64(b[20:])
	s.ID = binary.LittleEndian.Uint64(b[28:])
	s.Since = binary.LittleEndian.Uint64(b[36:])
	s.Segment = binary.LittleEndian.Uint32(b[44:])
	s.Offset = int64(binary.LittleEndian.Uint64(b[48:]))
	for i := range s.Counts {
		s.Counts[i] = binary.LittleEndian.Uint64(b[56+8*i:])
	}
	return readSealing(b[n-5 : n]), nil
}
