// Package pack stores sealed segments of the journal compactly. A pack is an immutable
// file that replaces one or several consecutive segments. It has the same commits at the
// same positions, with everything but the bodies coded field by field.
//
// A pack consists of chapters. A chapter has consecutive records in three parts: new ids;
// columns of fields; bodies and texts. A commit with more records than fit continues in
// the next chapter. In a dense pack, chapters are large and compressed independently. In
// other packs they are small, and the content of the first chapter is the dictionary of
// all others, so that reading a message takes two chapters.
package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/lineage/backend"
)

// FormatVersion is the version of the layout that this program writes, and the newest that
// it reads.
const FormatVersion = 7

const (
	headerSize = 64
	footerSize = 40
	tailSize   = 2 * footerSize // it is stored twice
	// maxFile exceeds the size of any pack: its source is 64 MiB of segments, or one
	// segment of at most 4 GiB. maxTable limits the table and the directory.
	maxFile  = 8 << 30
	maxTable = 1 << 28
	magic    = "LINEAGEP"
	endMagic = "LINPKEND"

	// Suffix is the suffix of packs, and Unfinished that of packs being written.
	Suffix     = ".pack"
	Unfinished = ".tmp"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Header is the first 64 bytes of a pack, integers little-endian:
//
//	 0  magic "LINEAGEP"
//	 8  format version, 4 bytes
//	12  first and last number of the segments that it replaces, 4 bytes each
//	20  number of the first commit, 8 bytes
//	28  number of the last commit, 8 bytes
//	36  store id, 16 bytes
//	52  flags, 1 byte: 1 when it was made to be small rather than fast, 2 when a collection
//	    removed records; others announce something that this program does not know
//	53  salt, 4 bytes: begins the checksum of every head of a chapter, so that bytes inside a
//	    message cannot pass for one
//	57  zero, 3 bytes
//	60  CRC-32C of the 60 bytes before
type Header struct {
	First, Last             uint32
	FirstCommit, LastCommit uint64 // none if LastCommit is FirstCommit-1
	Store                   [16]byte
	// Dense packs are smaller, but slower to write and read.
	Dense bool
	// Collected packs lack records that a collection removed.
	Collected bool
	Salt      [4]byte
}

const (
	flagDense = 1 << iota
	flagCollected
)

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
		b[52] |= flagDense
	}
	if h.Collected {
		b[52] |= flagCollected
	}
	copy(b[53:57], h.Salt[:])
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
	if v > 0 && v < FormatVersion {
		return h, fmt.Errorf("%w: pack format %d, this program reads %d", backend.ErrOlderFormat, v, FormatVersion)
	}
	if b[52]&^(flagDense|flagCollected) != 0 {
		return h, fmt.Errorf("%w: pack with flags %d", backend.ErrNewerFormat, b[52])
	}
	h = Header{
		First: binary.LittleEndian.Uint32(b[12:]), Last: binary.LittleEndian.Uint32(b[16:]),
		FirstCommit: binary.LittleEndian.Uint64(b[20:]), LastCommit: binary.LittleEndian.Uint64(b[28:]),
		Store: [16]byte(b[36:]), Dense: b[52]&flagDense != 0, Collected: b[52]&flagCollected != 0,
		Salt: [4]byte(b[53:]),
	}
	if v != FormatVersion || h.First == 0 || h.Last < h.First || h.FirstCommit == 0 || h.LastCommit >= 1<<62 || h.LastCommit+1 < h.FirstCommit || [3]byte(b[57:]) != [3]byte{} {
		return h, errors.New("header makes no sense")
	}
	return h, nil
}

// footer locates the rest of the file. It is stored twice, at the end of the file. Before
// it come the parity with its CRC-32C; before that the lookup tables, ending with their
// directory; and before that the table of chapters.
//
//	 0  offset of the table, 8 bytes
//	 8  its length, 4 bytes, and CRC-32C, 4 bytes
//	16  length of the directory of what finds things, 4 bytes; 0 for none
//	20  length of the parity, 4 bytes
//	24  CRC-32C of the header, 4 bytes
//	28  CRC-32C of the 28 bytes before, 4 bytes
//	32  magic "LINPKEND"
type footer struct {
	offset    int64
	length    uint32
	sum       uint32
	directory uint32
	parity    uint32
	header    uint32
}

// headerSum returns the checksum of a header in the footer.
func headerSum(header []byte) uint32 { return crc32.Checksum(header, castagnoli) }

func (f footer) encode() []byte {
	b := make([]byte, footerSize)
	binary.LittleEndian.PutUint64(b, uint64(f.offset))
	binary.LittleEndian.PutUint32(b[8:], f.length)
	binary.LittleEndian.PutUint32(b[12:], f.sum)
	binary.LittleEndian.PutUint32(b[16:], f.directory)
	binary.LittleEndian.PutUint32(b[20:], f.parity)
	binary.LittleEndian.PutUint32(b[24:], f.header)
	binary.LittleEndian.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
	copy(b[32:], endMagic)
	return b
}

func decodeFooter(b []byte) (f footer, err error) {
	if len(b) != footerSize || string(b[32:]) != endMagic || crc32.Checksum(b[:28], castagnoli) != binary.LittleEndian.Uint32(b[28:]) {
		return f, errors.New("footer checksum does not match")
	}
	return footer{
		offset: int64(binary.LittleEndian.Uint64(b)), length: binary.LittleEndian.Uint32(b[8:]), sum: binary.LittleEndian.Uint32(b[12:]),
		directory: binary.LittleEndian.Uint32(b[16:]), parity: binary.LittleEndian.Uint32(b[20:]), header: binary.LittleEndian.Uint32(b[24:]),
	}, nil
}

// parityAt returns the offset of the parity in a file of a size.
func (f footer) parityAt(size int64) int64 { return size - tailSize - 4 - int64(f.parity) }

// lookupAt returns the offset of the lookup tables, which end at the parity.
func (f footer) lookupAt() int64 { return f.offset + int64(f.length) }

// fits reports whether the footer is possible in a file of a size.
func (f footer) fits(size int64) bool {
	end := f.parityAt(size)
	return f.offset >= headerSize && f.offset <= size && f.length <= maxTable && f.directory <= maxTable && f.lookupAt()+int64(f.directory) <= end && int(f.parity) == paritySize(end)
}

// Name returns the file name of a pack of segments. A rewritten pack has the next
// generation, which replaces the earlier one.
func Name(first, last uint32, generation int) string {
	if generation == 0 {
		return fmt.Sprintf("%010d-%010d%s", first, last, Suffix)
	}
	return fmt.Sprintf("%010d-%010d.%d%s", first, last, generation, Suffix)
}

// ParseName is the inverse of Name. It returns false for other names.
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
	// State before the chapter:
	commit  uint64
	segment uint32
	end     int64 // of the frame before, or of the one that continues here
	id      uint32
	body    uint64
	offset  int64 // of the chapter, which begins with its head
	head    int64 // size of the head

	commits, ids int // commits and ids that begin here
	bodies       uint64
	parts        [3]part

	// Sizes before compression: of the ids, of the columns, and of the bodies by kind and
	// the texts, which make up the content.
	idBytes, columns int64
	laid             [bodyKinds]int64
	text             int64

	// rest describes the commit that continues in this chapter, if any.
	rest *rest
	// until is the end of the frame that continues in the next chapter; 0 for none.
	until int64
}

// size is the size of the content.
func (r *row) size() int64 { return r.laid[bodyText] + r.laid[bodyOther] + r.text }

// rest describes the part of a commit at the start of a chapter.
type rest struct {
	start int64 // of the frame
	begin int64 // of the first record here in the original frame, relative to the frame's start
	// The last span of the commit before this part: a byte for its run, and its place.
	run byte
	seq uint64
}

// pieces is the number of commits of which the chapter contains a part.
func (r *row) pieces() int {
	if r.rest != nil {
		return r.commits + 1
	}
	return r.commits
}

// part is a range of the file.
type part struct {
	offset, size int64
}

// Parts of a chapter: its new ids, the columns of its records, its bodies and texts.
const (
	partIDs = iota
	partColumns
	partContent
)

// appendTable writes the table, each row as differences to the one before and with the size of its
// head.
func appendTable(dst []byte, rows []row) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	var before row
	for i := range rows {
		dst = binary.AppendUvarint(appendRow(dst, &rows[i], &before), uint64(rows[i].head))
		before = rows[i]
	}
	return dst
}

// appendRow writes what a row adds to the one before, which may be empty.
func appendRow(dst []byte, r, before *row) []byte {
	head := uint64(r.commits) << 1
	if r.rest != nil {
		head |= 1
	}
	dst = binary.AppendUvarint(dst, head)
	dst = binary.AppendUvarint(dst, uint64(r.ids))
	dst = binary.AppendUvarint(dst, uint64(r.segment-before.segment))
	end := before.end
	if r.segment != before.segment {
		end = 0
	}
	dst = binary.AppendUvarint(dst, uint64(r.end-end))
	if x := r.rest; x != nil {
		dst = binary.AppendUvarint(dst, uint64(r.end-x.start))
		dst = binary.AppendUvarint(dst, uint64(x.begin))
		dst = binary.AppendUvarint(append(dst, x.run), x.seq)
	}
	dst = binary.AppendUvarint(dst, r.bodies)
	for _, n := range []int64{r.idBytes, r.columns, r.laid[bodyText], r.laid[bodyOther], r.text, r.parts[partIDs].size, r.parts[partColumns].size, r.parts[partContent].size} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

var errTable = errors.New("table of chapters makes no sense")

// readTable reads the table of the chapters from the header up to end.
func readTable(b []byte, h Header, end int64) ([]row, error) {
	v := varint.Reader{Rest: b}
	n := v.AtMost(uint64(len(b)) / 14)
	rows := make([]row, 0, n)
	r := row{commit: h.FirstCommit, id: 1, offset: headerSize}
	for i := range int(n) {
		if err := readRow(&v, &r); err != nil || i == 0 && r.rest != nil {
			return nil, errTable
		}
		if r.rest != nil {
			rows[i-1].until = r.end
		}
		r.head = int64(v.AtMost(maxHead))
		after := r.layOut()
		if v.Bad || after > end || r.head < minHead || !r.possible(h) {
			return nil, errTable
		}
		rows = append(rows, r)
		r.commit += uint64(r.commits)
		r.id += uint32(r.ids)
		r.body += r.bodies
		r.offset = after
	}
	if v.Bad || len(v.Rest) > 0 || r.commit != h.LastCommit+1 || r.offset != end {
		return nil, errTable
	}
	return rows, nil
}

// readRow changes a row to the one that follows it. The caller sets what the row begins with.
func readRow(v *varint.Reader, r *row) error {
	head := v.AtMost(1 << 40)
	r.commits, r.ids = int(head>>1), int(v.AtMost(1<<31))
	if d := v.AtMost(1<<32 - 1); d > 0 {
		r.segment, r.end = r.segment+uint32(d), 0
	}
	r.end += int64(v.AtMost(1 << 40))
	r.rest, r.until = nil, 0
	if head&1 != 0 {
		var err error
		if r.rest, err = readRest(v, r.end); err != nil {
			return err
		}
	}
	r.bodies = v.AtMost(1 << 40)
	for _, n := range []*int64{&r.idBytes, &r.columns, &r.laid[bodyText], &r.laid[bodyOther], &r.text} {
		*n = int64(v.AtMost(maxPart))
	}
	for k := range r.parts {
		r.parts[k].size = int64(v.AtMost(maxPart))
	}
	return nil
}

// layOut sets the offsets of the parts, which follow the head, and returns the end of the chapter.
func (r *row) layOut() int64 {
	at := r.offset + r.head
	for k := range r.parts {
		r.parts[k].offset = at
		at += r.parts[k].size
	}
	return at
}

// possible reports whether a pack with the header can have such a chapter.
func (r *row) possible(h Header) bool {
	return uint64(r.id)+uint64(r.ids) <= 1<<32-1 && r.segment <= h.Last && r.size() <= maxPart && r.pieces() > 0 && r.parts[partColumns].size > crc32.Size
}

func readRest(v *varint.Reader, end int64) (*rest, error) {
	x := &rest{start: end - int64(v.AtMost(uint64(end))), begin: int64(v.AtMost(1 << 40))}
	if v.Bad || len(v.Rest) == 0 {
		return nil, errTable
	}
	x.run, v.Rest = v.Rest[0], v.Rest[1:]
	x.seq = v.AtMost(1<<64 - 1)
	return x, nil
}
