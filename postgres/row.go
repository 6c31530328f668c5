package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/zframe"
	"github.com/lineage-store/lineage/lineage/backend"
)

// logRow is a row of the log: one or more commits, written in one transaction.
type logRow struct {
	first uint64 // number of the first commit
	count uint64
	id    uint64 // of all of them
	data  []byte // see appendCommit
	epoch uint64 // of the store when the row was read

	// The fields below are for a row that is being written.
	output
	counts index.Counts // of the state after it
	absent [][]byte     // keys that must have no entries
	// once is set if the row has requests of sessions. It is then written only if forgets is still the number of times that
	// sessions were forgotten.
	once    bool
	forgets uint64
}

// entryVersion is an entry to write.
type entryVersion struct {
	index.Entry
	replaces bool          // there may be an earlier version
	group    []index.Entry // the spans of a group, if it is one
}

func (r *logRow) last() backend.Cursor {
	return backend.Cursor{Number: r.first + r.count - 1, ID: r.id}
}

// The data of a row is
//
//	the version, 1 byte
//	for each commit: the length of its payload, a varint; the payload; and its request: 0 for
//	none; 1, the session, 16 bytes, and the sequence, a varint; or 2 for unknown, in a copy
//	CRC-32C of everything before, 4 bytes, little-endian
//
// In version 2 the commits are compressed with zstd.
const (
	rowPlain      = 1
	rowCompressed = 2
)

// maxRow is the largest size of the data of a row before compression. The server and the driver need
// four times as much memory.
const maxRow = 256 << 20

// leastCompressed is the size from which the data of a row are compressed, if that makes them smaller.
const leastCompressed = 200

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Data is compressed here, because the server is shared by all processes. Only wrong options make NewWriter fail.
var (
	compressor = sync.OnceValue(func() *zstd.Encoder {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false), zstd.WithAllLitEntropyCompression(true))
		return e
	})
	decompressor = sync.OnceValue(func() *zstd.Decoder {
		return zframe.NewDecoder(maxRow, zstd.WithDecoderConcurrency(0))
	})
)

// appendCommit adds a commit to the data of a row. Empty data gets the version first.
func appendCommit(dst []byte, c embedded.Sequenced) []byte {
	if len(dst) == 0 {
		dst = append(dst, rowPlain)
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

// seal completes the data of a row: it compresses them if that makes them smaller, and adds the
// checksum. Data that are too large are refused.
func (r *logRow) seal() error {
	if len(r.data) > maxRow {
		return fmt.Errorf("commit of %d bytes, at most %d: %w", len(r.data), maxRow, backend.ErrTooLarge)
	}
	if len(r.data) >= leastCompressed {
		packed := append(make([]byte, 0, len(r.data)), rowCompressed)
		if packed = compressor().EncodeAll(r.data[1:], packed); len(packed) < len(r.data) {
			r.data = packed
		}
	}
	r.data = binary.LittleEndian.AppendUint32(r.data, crc32.Checksum(r.data, castagnoli))
	return nil
}

var errRow = errors.New("not the data of a row")

// commits returns the commits of a row. They share its memory.
func (r *logRow) commits() ([]embedded.Sequenced, error) {
	commits, err := r.decode()
	switch {
	case errors.Is(err, backend.ErrNewerFormat):
		return nil, fmt.Errorf("commit %d: %w", r.first, err)
	case err != nil:
		return nil, &backend.CorruptError{File: fmt.Sprintf("row %d of the log", r.first), What: err.Error()}
	}
	return commits, nil
}

func (r *logRow) decode() ([]embedded.Sequenced, error) {
	b, err := expand(r.data)
	if err != nil {
		return nil, err
	}
	var commits []embedded.Sequenced
	for len(b) > 0 {
		c := embedded.Sequenced{Number: r.first + uint64(len(commits)), ID: r.id}
		if b, err = readCommit(b, &c); err != nil {
			return nil, err
		}
		commits = append(commits, c)
	}
	if uint64(len(commits)) != r.count || r.count == 0 {
		return nil, fmt.Errorf("it has %d commits instead of %d", len(commits), r.count)
	}
	return commits, nil
}

// expand checks the checksum of the data of a row, and returns its encoded commits.
func expand(data []byte) ([]byte, error) {
	end := len(data) - crc32.Size
	if end < 1 {
		return nil, errRow
	}
	b := data[:end]
	if binary.LittleEndian.Uint32(data[end:]) != crc32.Checksum(b, castagnoli) {
		return nil, errors.New("the checksum does not match")
	}
	version, b := b[0], b[1:]
	switch version {
	case rowPlain:
		return b, nil
	case rowCompressed:
		return zframe.ExpandStated(decompressor(), b, maxRow)
	case 0:
		return nil, errRow
	}
	return nil, fmt.Errorf("version %d of a row of the log: %w", version, backend.ErrNewerFormat)
}

// readCommit reads the payload and the request of a commit, and returns what follows.
func readCommit(b []byte, c *embedded.Sequenced) (rest []byte, err error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size >= uint64(len(b)-n) {
		return nil, errRow
	}
	b = b[n:]
	c.Payload, b = b[:size:size], b[size:]
	request := b[0]
	b = b[1:]
	switch request {
	case 0:
	case 1:
		c.Once = &backend.Once{}
		if len(b) < len(c.Once.Session) {
			return nil, errRow
		}
		b = b[copy(c.Once.Session[:], b):]
		if c.Once.Sequence, n = binary.Uvarint(b); n <= 0 {
			return nil, errRow
		}
		b = b[n:]
	case 2:
		c.Unknown = true
	default:
		return nil, errRow
	}
	return b, nil
}

// output is what the commits of a batch write beside the log.
type output struct {
	entries  []entryVersion // by key
	changes  []byte         // what becomes unfolded; nil if the batch folds
	folded   uint64         // the last commit that folded, after the batch
	unfolded *unfolded      // what is unfolded, after the batch
}

// ungrouped returns entries with the spans of groups in their places.
func ungrouped(written []entryVersion) []index.Entry {
	all := make([]index.Entry, 0, len(written))
	for _, e := range written {
		if e.group != nil {
			all = append(all, e.group...)
		} else {
			all = append(all, e.Entry)
		}
	}
	return all
}
