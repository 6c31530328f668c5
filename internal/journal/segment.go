package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// FormatVersion is the version of the journal's layout that this program writes, and
// the newest that it reads.
const FormatVersion = 2

const (
	headerSize  = 64
	headerMagic = "LINEAGEJ"
	suffix      = ".seg"
)

// maxSegment exceeds the size of any segment: the largest SegmentSize, and reserved
// space after its frames.
const maxSegment = 4<<30 + 64<<20

// FirstOffset is the offset of the first frame of a segment.
const FirstOffset = headerSize

// errNoHeader is returned for a file that is too short for a header, or whose header
// was never written.
var errNoHeader = errors.New("no header")

// header is the first 64 bytes of a segment, integers little-endian:
//
//	 0  magic "LINEAGEJ"
//	 8  format version, 4 bytes
//	12  segment number, 4 bytes
//	16  number of the first commit, 8 bytes
//	24  store id, 16 bytes
//	40  salt, 8 bytes: begins every frame's checksum, so that bytes inside a
//	    message cannot pass for a frame
//	48  time of creation, Unix milliseconds, 8 bytes
//	56  zero, 4 bytes
//	60  CRC-32C of the 60 bytes before
type header struct {
	segment uint32
	first   uint64
	store   [16]byte
	salt    [8]byte
	created time.Time
}

func (h header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, headerMagic)
	binary.LittleEndian.PutUint32(b[8:], FormatVersion)
	binary.LittleEndian.PutUint32(b[12:], h.segment)
	binary.LittleEndian.PutUint64(b[16:], h.first)
	copy(b[24:], h.store[:])
	copy(b[40:], h.salt[:])
	binary.LittleEndian.PutUint64(b[48:], uint64(h.created.UnixMilli()))
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

// decodeHeader decodes a header. The version is checked before the checksum, so that
// a future layout gets the right error.
func decodeHeader(b []byte) (header, error) {
	if len(b) < headerSize || [headerSize]byte(b) == [headerSize]byte{} {
		return header{}, errNoHeader
	}
	if string(b[:8]) != headerMagic {
		return header{}, errors.New("not a journal segment")
	}
	v := binary.LittleEndian.Uint32(b[8:])
	if v > FormatVersion {
		return header{}, fmt.Errorf("%w: journal format %d, this program reads up to %d",
			backend.ErrNewerFormat, v, FormatVersion)
	}
	if crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) {
		return header{}, errors.New("header checksum does not match")
	}
	if v > 0 && v < FormatVersion {
		return header{}, fmt.Errorf("%w: journal format %d, this program reads %d", backend.ErrOlderFormat, v, FormatVersion)
	}
	if v != FormatVersion {
		return header{}, fmt.Errorf("journal format %d is not known", v)
	}
	h := header{
		segment: binary.LittleEndian.Uint32(b[12:]),
		first:   binary.LittleEndian.Uint64(b[16:]),
		created: time.UnixMilli(int64(binary.LittleEndian.Uint64(b[48:]))).UTC(),
	}
	copy(h.store[:], b[24:])
	copy(h.salt[:], b[40:])
	switch {
	case h.segment == 0 || h.first == 0:
		return header{}, errors.New("numbers begin with 1")
	case h.first > maxNumber:
		return header{}, fmt.Errorf("commit number %d is too large", h.first)
	case binary.LittleEndian.Uint32(b[56:]) != 0:
		return header{}, errors.New("undefined bytes are set")
	}
	return h, nil
}

// segment is a file of the journal: a segment, or a pack of one or several.
type segment struct {
	header
	last uint32 // last segment in the file
	name string // path
	file vfs.File
	pack *pack.File // nil for an unpacked segment
	// generation distinguishes a pack from earlier ones of the same segments.
	generation int
	// uses counts the file sets with this segment. doomed means that its file is removed
	// with the last of them.
	uses   atomic.Int64
	doomed bool
	// crc is the checksum state after the salt.
	crc uint32
	// end is the end of the frames, or the size of a pack. It grows while the segment
	// is the last.
	end atomic.Int64
}

func segmentName(number uint32) string { return fmt.Sprintf("%010d%s", number, suffix) }

// segmentNumber returns the number in a file name, or false for other names.
func segmentNumber(name string) (uint32, bool) {
	base, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseUint(base, 10, 32)
	return uint32(n), ok && err == nil && n > 0 && segmentName(uint32(n)) == name
}

func (s *segment) init(h header) {
	s.header, s.last = h, h.segment
	s.crc = crc32.Update(0, castagnoli, h.salt[:])
}

// follows returns an error if a frame may not follow the commit with the given
// number.
func (s *segment) follows(f Frame, number uint64) error {
	if f.Mark && f.Number == number || !f.Mark && f.Number == number+1 {
		return nil
	}
	return s.corrupt(f.Position.Offset, fmt.Sprintf("commit %d follows commit %d", f.Number, number))
}

func (s *segment) corrupt(offset int64, what string) error {
	return &backend.CorruptError{File: s.name, Offset: offset, What: what}
}

func (s *segment) open(fsys vfs.FS) error {
	if s.file != nil {
		return nil
	}
	f, err := fsys.Open(s.name)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	s.file = f
	return nil
}

func (s *segment) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
