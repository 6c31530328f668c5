package pack

import (
	"bytes"
	"fmt"
	"sort"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Object returns the block or chunk whose record was at an offset of a segment, in
// the frame at another offset.
func (p *File) Object(segment uint32, frame, record int64) (structure.Record, error) {
	n, err := p.chapterAt(segment, frame)
	if err != nil {
		return nil, err
	}
	rests := p.restsAt(n, segment, frame)
	behind := sort.Search(len(rests), func(i int) bool { return rests[i].Rest.FrameStart+rests[i].Rest.RecordsAt > record })
	var found piece
	if behind > 0 {
		found, err = p.restIn(n + behind)
	} else {
		found, err = p.locate(segment, frame)
	}
	if err != nil {
		return nil, err
	}
	c, x := found.c, found.x
	at := int(record - x.PayloadAt())
	if x.Verbatim {
		body, err := p.bodyIn(c, uint64(x.Bodies[0]))
		if err != nil {
			return nil, err
		}
		size := 0
		if at >= 0 && at < len(body) {
			size = structure.RecordSize(body[at:])
		}
		if size == 0 || size > len(body)-at {
			return nil, p.corrupt(c.Offset, fmt.Sprintf("no record was at byte %d of segment %d", record, segment))
		}
		return structure.DecodeObject(bytes.Clone(body[at:][:size]))
	}
	begins, err := p.places(found)
	if err != nil {
		return nil, err
	}
	i := sort.SearchInts(begins, at)
	if i == len(begins) || begins[i] != at {
		return nil, p.corrupt(c.Offset, fmt.Sprintf("no record was at byte %d of segment %d", record, segment))
	}
	switch r := x.Records[i].(type) {
	case *structure.Block:
		if x.Bodies[i] < 0 {
			out := *r
			return &out, nil
		}
		body, err := p.bodyIn(c, uint64(x.Bodies[i]))
		if err != nil {
			return nil, err
		}
		out := *r
		out.Body, out.ID = bytes.Clone(body), content.Sum(body)
		return &out, nil
	case *structure.Chunk:
		body, err := p.bodyIn(c, uint64(x.Bodies[i]))
		if err != nil {
			return nil, err
		}
		return &structure.Chunk{Key: content.KeyOf(body), Bytes: bytes.Clone(body)}, nil
	}
	return nil, p.corrupt(c.Offset, fmt.Sprintf("no content was at byte %d of segment %d", record, segment))
}
