package pack

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/lineage-store/lineage/internal/varint"
)

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

// fileEnd returns the offset after the chapter.
func (r *row) fileEnd() int64 { return r.parts[partContent].offset + r.parts[partContent].size }

// first is the first commit of which the chapter contains a part.
func (r *row) first() uint64 {
	if r.rest != nil {
		return r.commit - 1
	}
	return r.commit
}

// Bodies of a kind are stored together: texts, and everything else.
const (
	bodyText = iota
	bodyOther
	bodyKinds
)

// maxPart limits the decompressed size of a part.
const maxPart = 1 << 30

var errForm = errors.New("malformed record")
