// Package pack keeps sealed segments of the journal in little room. A pack is an
// immutable file that stands for one or several consecutive segments: the same
// commits under the same positions, with bodies compressed in groups and
// everything else coded field by field.
//
// A pack consists of chapters. A chapter holds consecutive commits in parts: new
// ids, records, texts, and groups of bodies. The first chapter is the base: it is
// larger, and what coding it taught, and its texts and bodies as dictionaries, is
// what every other chapter starts from. So reading a message takes the base once,
// and then one small chapter.
package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
)

// FormatVersion is the version of the layout that this program writes and the
// newest that it reads.
const FormatVersion = 1

const (
	headerSize = 64
	footerSize = 32
	magic      = "LINEAGEP"
	endMagic   = "LINPKEND"

	// Suffix ends the names of packs, and Unfinished those of packs in the making.
	Suffix     = ".pack"
	Unfinished = ".tmp"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the first 64 bytes of a pack, integers little-endian:
//
//	 0  magic "LINEAGEP"
//	 8  format version, 4 bytes
//	12  first and last number of the segments that it stands for, 4 bytes each
//	20  number of the first commit, 8 bytes
//	28  number of the last commit, 8 bytes
//	36  store id, 16 bytes
//	52  1 when it was made to be small rather than fast, 1 byte; zero, 7 bytes
//	60  CRC-32C of the 60 bytes before
type Header struct {
	First, Last             uint32
	FirstCommit, LastCommit uint64 // none when the last is the one before the first
	Store                   [16]byte
	// Dense packs are smaller, and take longer to write and read.
	Dense bool
}

func (h Header) encode() []byte {
	b := make([]byte, headerSize)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], FormatVersion)
	binary.LittleEndian.PutUint32(b[12:], h.First)
	binary.LittleEndian.PutUint32(b[16:], h.Last)
	binary.LittleEndian.PutUint64(b[20:], h.FirstCommit)
	binary.LittleEndian.PutUint64(b[28:], h.LastCommit)
	copy(b[36:], h.Store[:])
	if h.Dense {
		b[52] = 1
	}
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

func decodeHeader(b []byte) (h Header, err error) {
	if len(b) < headerSize || string(b[:8]) != magic {
		return h, errors.New("not a pack")
	}
	v := binary.LittleEndian.Uint32(b[8:])
	if v > FormatVersion {
		return h, fmt.Errorf("%w: pack format %d, this program reads up to %d", backend.ErrNewerFormat, v, FormatVersion)
	}
	if crc32.Checksum(b[:60], castagnoli) != binary.LittleEndian.Uint32(b[60:]) {
		return h, errors.New("header checksum does not match")
	}
	h = Header{
		First: binary.LittleEndian.Uint32(b[12:]), Last: binary.LittleEndian.Uint32(b[16:]),
		FirstCommit: binary.LittleEndian.Uint64(b[20:]), LastCommit: binary.LittleEndian.Uint64(b[28:]),
		Store: [16]byte(b[36:]), Dense: b[52] == 1,
	}
	if v != FormatVersion || h.First == 0 || h.Last < h.First || h.FirstCommit == 0 || h.LastCommit >= 1<<62 || h.LastCommit+1 < h.FirstCommit ||
		binary.LittleEndian.Uint64(b[52:]) > 1 {
		return h, errors.New("header makes no sense")
	}
	return h, nil
}

// footer is the last 32 bytes: where the table of chapters stands.
//
//	 0  offset of the table, 8 bytes
//	 8  its length, 4 bytes, and CRC-32C, 4 bytes
//	16  zero, 4 bytes
//	20  CRC-32C of the header and the 20 bytes before, 4 bytes
//	24  magic "LINPKEND"
type footer struct {
	offset int64
	length uint32
	sum    uint32
}

func (f footer) encode(header []byte) []byte {
	b := make([]byte, footerSize)
	binary.LittleEndian.PutUint64(b, uint64(f.offset))
	binary.LittleEndian.PutUint32(b[8:], f.length)
	binary.LittleEndian.PutUint32(b[12:], f.sum)
	binary.LittleEndian.PutUint32(b[20:], crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, b[:20]))
	copy(b[24:], endMagic)
	return b
}

func decodeFooter(header, b []byte) (f footer, err error) {
	if len(b) != footerSize || string(b[24:]) != endMagic ||
		crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, b[:20]) != binary.LittleEndian.Uint32(b[20:]) {
		return f, errors.New("footer checksum does not match")
	}
	return footer{
		offset: int64(binary.LittleEndian.Uint64(b)), length: binary.LittleEndian.Uint32(b[8:]), sum: binary.LittleEndian.Uint32(b[12:]),
	}, nil
}

// Name returns the file name of the pack of some segments. A pack that was written
// anew is of the next generation, which is the one that counts.
func Name(first, last uint32, generation int) string {
	if generation == 0 {
		return fmt.Sprintf("%010d-%010d%s", first, last, Suffix)
	}
	return fmt.Sprintf("%010d-%010d.%d%s", first, last, generation, Suffix)
}

// ParseName returns what Name was given, or false for another file.
func ParseName(name string) (first, last uint32, generation int, ok bool) {
	base, ok := strings.CutSuffix(name, Suffix)
	a, b, found := strings.Cut(base, "-")
	if !ok || !found {
		return 0, 0, 0, false
	}
	b, g, again := strings.Cut(b, ".")
	x, err1 := strconv.ParseUint(a, 10, 32)
	y, err2 := strconv.ParseUint(b, 10, 32)
	var err3 error
	if again {
		generation, err3 = strconv.Atoi(g)
	}
	first, last = uint32(x), uint32(y)
	ok = err1 == nil && err2 == nil && err3 == nil && generation >= 0 && first > 0 && first <= last && Name(first, last, generation) == name
	return first, last, generation, ok
}

// row is an entry of the table of chapters.
type row struct {
	// What came before it:
	commit  uint64
	segment uint32
	end     int64 // of the frame before
	id      uint32
	body    uint64
	offset  int64

	commits, ids int
	bodies       uint64
	text         int64 // size of the texts
	parts        [3]part
	groups       []group
}

// part is a stretch of the file.
type part struct {
	offset, size int64
}

// group is a part that holds bodies.
type group struct {
	part
	body   uint64 // the first
	bodies int
	raw    int64
}

const (
	partIDs = iota
	partRecords
	partTexts
)

// appendTable writes the table: what each row adds to the one before.
func appendTable(dst []byte, rows []row) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	segment, end := uint32(0), int64(0)
	for _, r := range rows {
		dst = binary.AppendUvarint(dst, uint64(r.commits))
		dst = binary.AppendUvarint(dst, uint64(r.ids))
		dst = binary.AppendUvarint(dst, uint64(r.segment-segment))
		if r.segment != segment {
			end = 0
		}
		dst = binary.AppendUvarint(dst, uint64(r.end-end))
		segment, end = r.segment, r.end
		dst = binary.AppendUvarint(dst, uint64(r.text))
		for _, p := range r.parts {
			dst = binary.AppendUvarint(dst, uint64(p.size))
		}
		dst = binary.AppendUvarint(dst, uint64(len(r.groups)))
		for _, g := range r.groups {
			dst = binary.AppendUvarint(dst, uint64(g.bodies))
			dst = binary.AppendUvarint(dst, uint64(g.raw))
			dst = binary.AppendUvarint(dst, uint64(g.size))
		}
	}
	return dst
}

var errTable = errors.New("table of chapters makes no sense")

// readTable reads a table that begins behind the header and covers the file up
// to the given end.
func readTable(b []byte, h Header, end int64) ([]row, error) {
	bad := false
	next := func(most uint64) uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > most {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return v
	}
	n := next(uint64(len(b)) / 8)
	rows := make([]row, 0, n)
	r := row{commit: h.FirstCommit, id: 1, offset: headerSize}
	for range n {
		r.commits, r.ids = int(next(1<<40)), int(next(1<<31))
		if d := next(1<<32 - 1); d > 0 {
			r.segment, r.end = r.segment+uint32(d), 0
		}
		r.end += int64(next(1 << 40))
		r.text = int64(next(mostGroup))
		offset := r.offset
		take := func(most uint64) part {
			p := part{offset: offset, size: int64(next(most))}
			offset += p.size
			return p
		}
		for i := range r.parts {
			r.parts[i] = take(mostGroup)
		}
		groups := next(uint64(len(b)))
		r.groups, r.bodies = nil, 0
		for range groups {
			g := group{body: r.body + r.bodies, bodies: int(next(1 << 40)), raw: int64(next(mostGroup))}
			g.part = take(mostGroup)
			r.bodies += uint64(g.bodies)
			r.groups = append(r.groups, g)
		}
		if bad || offset > end || uint64(r.id)+uint64(r.ids) > 1<<32-1 || r.segment > h.Last {
			return nil, errTable
		}
		rows = append(rows, r)
		r.commit += uint64(r.commits)
		r.id += uint32(r.ids)
		r.body += r.bodies
		r.offset = offset
	}
	if bad || len(b) > 0 || r.commit != h.LastCommit+1 || r.offset != end {
		return nil, errTable
	}
	return rows, nil
}
