package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
)

// row is a row of the log: one or more commits, written in one transaction.
type row struct {
	first uint64 // number of the first commit
	count uint64
	id    uint64 // of all of them
	data  []byte // see appendCommit
	epoch uint64 // of the store when the row was read
}

func (r *row) last() backend.Cursor { return backend.Cursor{Number: r.first + r.count - 1, ID: r.id} }

// The data of a row is
//
//	the version, 1 byte
//	for each commit: the length of its payload, a varint; the payload; and its request: 0 for
//	none; 1, the session, 16 bytes, and the sequence, a varint; or 2 for unknown, in a copy
//	CRC-32C of everything before, 4 bytes, little-endian
const rowVersion = 1

// maxRow is the largest size of the data of a row. The server and the driver need four times as much
// memory.
const maxRow = 256 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendCommit adds a commit to the data of a row. Empty data gets the version first.
func appendCommit(dst []byte, c embedded.Sequenced) []byte {
	if len(dst) == 0 {
		dst = append(dst, rowVersion)
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.Payload)))
	dst = append(dst, c.Payload...)
	switch {
	case c.Unknown:
		return append(dst, 2)
	case c.Once == nil:
		return append(dst, 0)
	}
	dst = append(append(dst, 1), c.Once.Session[:]...)
	return binary.AppendUvarint(dst, c.Once.Sequence)
}

// seal adds the checksum.
func seal(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst, castagnoli))
}

var errRow = errors.New("not the data of a row")

// commits returns the commits of a row. They share its memory.
func (r *row) commits() ([]embedded.Sequenced, error) {
	commits, err := r.decode()
	switch {
	case errors.Is(err, backend.ErrNewerFormat):
		return nil, fmt.Errorf("commit %d: %w", r.first, err)
	case err != nil:
		return nil, &backend.CorruptError{File: fmt.Sprintf("row %d of the log", r.first), What: err.Error()}
	}
	return commits, nil
}

func (r *row) decode() ([]embedded.Sequenced, error) {
	end := len(r.data) - crc32.Size
	if end < 1 {
		return nil, errRow
	}
	b := r.data[:end]
	if binary.LittleEndian.Uint32(r.data[end:]) != crc32.Checksum(b, castagnoli) {
		return nil, errors.New("the checksum does not match")
	}
	switch {
	case b[0] > rowVersion:
		return nil, fmt.Errorf("version %d of a row of the log: %w", b[0], backend.ErrNewerFormat)
	case b[0] < rowVersion:
		return nil, errRow
	}
	b = b[1:]
	var commits []embedded.Sequenced
	for len(b) > 0 {
		c := embedded.Sequenced{Number: r.first + uint64(len(commits)), ID: r.id}
		size, n := binary.Uvarint(b)
		if n <= 0 || size >= uint64(len(b)-n) {
			return nil, errRow
		}
		b = b[n:]
		c.Payload, b = b[:size:size], b[size:]
		named := b[0]
		b = b[1:]
		switch {
		case named > 2:
			return nil, errRow
		case named == 2:
			c.Unknown = true
		case named == 1:
			c.Once = &backend.Once{}
			if len(b) < len(c.Once.Session) {
				return nil, errRow
			}
			b = b[copy(c.Once.Session[:], b):]
			if c.Once.Sequence, n = binary.Uvarint(b); n <= 0 {
				return nil, errRow
			}
			b = b[n:]
		}
		commits = append(commits, c)
	}
	if uint64(len(commits)) != r.count || r.count == 0 {
		return nil, fmt.Errorf("it has %d commits instead of %d", len(commits), r.count)
	}
	return commits, nil
}
