package layout

import (
	"encoding/binary"
	"errors"
	"hash/crc32"

	"github.com/lineage-store/lineage/internal/varint"
)

// ChapterRow is an entry of the table of chapters.
type ChapterRow struct {
	// State before the chapter:
	Commit  uint64
	Segment uint32
	End     int64 // of the frame before, or of the one that continues here
	ID      uint32
	Body    uint64
	Offset  int64 // of the chapter, which begins with its head
	Head    int64 // size of the head

	Commits, IDs int // commits and ids that begin here
	Bodies       uint64
	Parts        [3]Range

	// Sizes before compression: of the ids, of the columns, and of the bodies by kind and
	// the texts, which make up the content.
	IDBytes, Columns int64
	Laid             [BodyKinds]int64
	Text             int64

	// Rest describes the commit that continues in this chapter, if any.
	Rest *Rest
	// Until is the end of the frame that continues in the next chapter; 0 for none.
	Until int64
}

// ContentSize is the size of the content.
func (r *ChapterRow) ContentSize() int64 { return r.Laid[BodyText] + r.Laid[BodyOther] + r.Text }

// Rest describes the part of a commit at the start of a chapter.
type Rest struct {
	FrameStart int64 // of the frame
	RecordsAt  int64 // of the first record here in the original frame, relative to the frame's start
	// The last span of the commit before this part: a byte for its run, and its place.
	Run byte
	Seq uint64
}

// Pieces is the number of commits of which the chapter contains a part.
func (r *ChapterRow) Pieces() int {
	if r.Rest != nil {
		return r.Commits + 1
	}
	return r.Commits
}

// Range is a range of the file.
type Range struct {
	Offset, Size int64
}

// Parts of a chapter: its new ids, the columns of its records, its bodies and texts.
const (
	PartIDs = iota
	PartColumns
	PartContent
)

// AppendTable writes the table, each row as differences to the one before and with the size of its
// head.
func AppendTable(dst []byte, rows []ChapterRow) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(rows)))
	var before ChapterRow
	for i := range rows {
		dst = binary.AppendUvarint(appendRow(dst, &rows[i], &before), uint64(rows[i].Head))
		before = rows[i]
	}
	return dst
}

// appendRow writes what a row adds to the one before, which may be empty.
func appendRow(dst []byte, r, before *ChapterRow) []byte {
	head := uint64(r.Commits) << 1
	if r.Rest != nil {
		head |= 1
	}
	dst = binary.AppendUvarint(dst, head)
	dst = binary.AppendUvarint(dst, uint64(r.IDs))
	dst = binary.AppendUvarint(dst, uint64(r.Segment-before.Segment))
	end := before.End
	if r.Segment != before.Segment {
		end = 0
	}
	dst = binary.AppendUvarint(dst, uint64(r.End-end))
	if x := r.Rest; x != nil {
		dst = binary.AppendUvarint(dst, uint64(r.End-x.FrameStart))
		dst = binary.AppendUvarint(dst, uint64(x.RecordsAt))
		dst = binary.AppendUvarint(append(dst, x.Run), x.Seq)
	}
	dst = binary.AppendUvarint(dst, r.Bodies)
	for _, n := range []int64{r.IDBytes, r.Columns, r.Laid[BodyText], r.Laid[BodyOther], r.Text, r.Parts[PartIDs].Size, r.Parts[PartColumns].Size, r.Parts[PartContent].Size} {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return dst
}

var ErrTable = errors.New("table of chapters makes no sense")

// ReadTable reads the table of the chapters from the header up to end.
func ReadTable(b []byte, h Header, end int64) ([]ChapterRow, error) {
	v := varint.Reader{Rest: b}
	n := v.AtMost(uint64(len(b)) / 14)
	rows := make([]ChapterRow, 0, n)
	r := ChapterRow{Commit: h.FirstCommit, ID: 1, Offset: HeaderSize}
	for i := range int(n) {
		if err := readRow(&v, &r); err != nil || i == 0 && r.Rest != nil {
			return nil, ErrTable
		}
		if r.Rest != nil {
			rows[i-1].Until = r.End
		}
		r.Head = int64(v.AtMost(MaxHead))
		after := r.LayOut()
		if v.Bad || after > end || r.Head < minHead || !r.possible(h) {
			return nil, ErrTable
		}
		rows = append(rows, r)
		r.Commit += uint64(r.Commits)
		r.ID += uint32(r.IDs)
		r.Body += r.Bodies
		r.Offset = after
	}
	if v.Bad || len(v.Rest) > 0 || r.Commit != h.LastCommit+1 || r.Offset != end {
		return nil, ErrTable
	}
	return rows, nil
}

// readRow changes a row to the one that follows it. The caller sets what the row begins with.
func readRow(v *varint.Reader, r *ChapterRow) error {
	head := v.AtMost(1 << 40)
	r.Commits, r.IDs = int(head>>1), int(v.AtMost(1<<31))
	if d := v.AtMost(1<<32 - 1); d > 0 {
		r.Segment, r.End = r.Segment+uint32(d), 0
	}
	r.End += int64(v.AtMost(1 << 40))
	r.Rest, r.Until = nil, 0
	if head&1 != 0 {
		var err error
		if r.Rest, err = readRest(v, r.End); err != nil {
			return err
		}
	}
	r.Bodies = v.AtMost(1 << 40)
	for _, n := range []*int64{&r.IDBytes, &r.Columns, &r.Laid[BodyText], &r.Laid[BodyOther], &r.Text} {
		*n = int64(v.AtMost(MaxPart))
	}
	for k := range r.Parts {
		r.Parts[k].Size = int64(v.AtMost(MaxPart))
	}
	return nil
}

// LayOut sets the offsets of the parts, which follow the head, and returns the end of the chapter.
func (r *ChapterRow) LayOut() int64 {
	at := r.Offset + r.Head
	for k := range r.Parts {
		r.Parts[k].Offset = at
		at += r.Parts[k].Size
	}
	return at
}

// possible reports whether a pack with the header can have such a chapter.
func (r *ChapterRow) possible(h Header) bool {
	return uint64(r.ID)+uint64(r.IDs) <= 1<<32-1 && r.Segment <= h.Last && r.ContentSize() <= MaxPart && r.Pieces() > 0 && r.Parts[PartColumns].Size > crc32.Size
}

func readRest(v *varint.Reader, end int64) (*Rest, error) {
	x := &Rest{FrameStart: end - int64(v.AtMost(uint64(end))), RecordsAt: int64(v.AtMost(1 << 40))}
	if v.Bad || len(v.Rest) == 0 {
		return nil, ErrTable
	}
	x.Run, v.Rest = v.Rest[0], v.Rest[1:]
	x.Seq = v.AtMost(1<<64 - 1)
	return x, nil
}

// Sizes of a head, see EncodeHead.
const (
	minHead = 1 + 4 + 13 + 4
	MaxHead = 1 + 255 + 4
)

// FileEnd returns the offset after the chapter.
func (r *ChapterRow) FileEnd() int64 { return r.Parts[PartContent].Offset + r.Parts[PartContent].Size }

// First is the first commit of which the chapter contains a part.
func (r *ChapterRow) First() uint64 {
	if r.Rest != nil {
		return r.Commit - 1
	}
	return r.Commit
}

// Bodies of a kind are stored together: texts, and everything else.
const (
	BodyText = iota
	BodyOther
	BodyKinds
)

// MaxPart limits the decompressed size of a part.
const MaxPart = 1 << 30

var ErrForm = errors.New("malformed record")
