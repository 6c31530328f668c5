package pack

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/lineage-store/lineage/structure"
)

// Object returns the block or chunk whose record was at an offset of a segment, in
// the frame at another offset.
func (p *File) Object(segment uint32, frame, record int64) (structure.Record, error) {
	n, err := p.chapterAt(segment, frame)
	if err != nil {
		return nil, err
	}
	continuations := p.continuationsAt(n, segment, frame)
	behind := sort.Search(len(continuations), func(i int) bool { return continuations[i].Rest.FrameStart+continuations[i].Rest.RecordsAt > record })
	r, err := p.objectAt(n+behind, segment, frame, record)
	if r != nil || err != nil {
		return r, err
	}
	at, err := p.locate(segment, frame)
	if err != nil {
		return nil, err
	}
	if at.x.Verbatim {
		return p.verbatimObject(at, record)
	}
	if r, err = p.objectAt(at.n, segment, frame, record); r == nil && err == nil {
		err = p.corrupt(at.c.Offset, fmt.Sprintf("no content was at byte %d of segment %d", record, segment))
	}
	return r, err
}

// objectAt returns the block or chunk of a chapter whose record was at a position, or nil if the chapter does not have it or
// has it in a verbatim payload.
func (p *File) objectAt(n int, segment uint32, frame, record int64) (structure.Record, error) {
	in, err := p.objects(n)
	if err != nil {
		return nil, err
	}
	x := in.placed(segment, frame, record)
	if x == nil || x.record == nil {
		return nil, nil
	}
	return p.whole(in, x, nil)
}

// verbatimObject returns the block or chunk whose record was at an offset of the segment of a verbatim commit.
func (p *File) verbatimObject(in commitPiece, record int64) (structure.Record, error) {
	body, err := p.bodyIn(in.c.bodies, uint64(in.x.Bodies[0]))
	if err != nil {
		return nil, err
	}
	at, size := record-in.x.PayloadAt(), 0
	if at >= 0 && at < int64(len(body)) {
		size = structure.RecordSize(body[at:])
	}
	if size == 0 || int64(size) > int64(len(body))-at {
		return nil, p.corrupt(in.c.Offset, fmt.Sprintf("no record was at byte %d of segment %d", record, in.x.Segment))
	}
	return structure.DecodeObject(bytes.Clone(body[at:][:size]))
}
