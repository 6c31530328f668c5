package pack

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// find returns the chapter that contains a position or begins after it.
func (p *File) find(segment uint32, offset int64) (int, error) {
	rows, err := p.table()
	if err != nil {
		return 0, err
	}
	n := sort.Search(len(rows), func(i int) bool {
		r := &rows[i]
		return r.segment > segment || r.segment == segment && r.end > offset
	}) - 1
	return max(n, 0), nil
}

// startsFrom reports whether a commit's frame starts at or after a position.
func (x *commit) startsFrom(segment uint32, offset int64) bool {
	return x.segment > segment || x.segment == segment && x.start >= offset
}

// locate returns the commit of the frame at a position, or its first piece.
func (p *File) locate(segment uint32, offset int64) (piece, error) {
	n, err := p.find(segment, offset)
	if err != nil {
		return piece{}, err
	}
	for ; n < len(p.rows); n++ {
		c, err := p.chapter(n)
		if err != nil {
			return piece{}, err
		}
		i := sort.Search(len(c.commits), func(i int) bool { return c.commits[i].startsFrom(segment, offset) })
		if i == len(c.commits) {
			continue
		}
		if x := c.commits[i]; x.segment == segment && x.start == offset {
			return piece{c, x, n}, nil
		}
		break
	}
	return piece{}, p.corrupt(0, fmt.Sprintf("no commit was at byte %d of segment %d", offset, segment))
}

// Frame returns the commit of the frame at a position.
func (p *File) Frame(segment uint32, offset int64) (Frame, error) {
	at, err := p.locate(segment, offset)
	if err != nil {
		return Frame{}, err
	}
	return p.frame(at)
}

func (p *File) frame(at piece) (Frame, error) {
	x := at.x
	f := Frame{Segment: x.segment, Start: x.start, End: x.end, Number: x.number, ID: p.idFrom(x.number), PayloadOffset: x.payloadAt(), Offsets: x.offsets}
	if x.verbatim {
		body, err := p.bodyIn(at.c, uint64(x.bodies[0]))
		f.Payload = bytes.Clone(body)
		return f, err
	}
	pieces := []piece{at}
	for at.x.open {
		var err error
		if at, err = p.after(at); err != nil {
			return f, err
		}
		pieces = append(pieces, at)
	}
	if len(pieces) > 1 {
		x = joinedPieces(pieces)
		f.Offsets = x.offsets
	}
	var e structure.Encoder
	payload, _, err := x.encode(&e, func(i int) (content.ID, []byte, error) {
		for len(pieces) > 1 && uint64(x.bodies[i]) >= pieces[1].c.body {
			pieces = pieces[1:]
		}
		body, err := p.bodyIn(pieces[0].c, uint64(x.bodies[i]))
		if _, block := x.records[i].(*structure.Block); !block || err != nil {
			return content.ID{}, body, err
		}
		id := content.Sum(body)
		if at := x.bodies[i]; at < int64(len(p.proven)) {
			p.proven[at] = id
		}
		return id, body, nil
	}, p.contentID)
	if errors.Is(err, structure.ErrIncomplete) || errors.Is(err, errForm) { // no written pack has such a record
		err = p.corrupt(at.c.offset, err.Error())
	}
	f.Payload = payload
	if err == nil {
		if _, err = p.places(at); err == nil && int64(len(payload)) != at.x.payload {
			err = p.corrupt(at.c.offset, errForm.Error())
		}
	}
	return f, err
}

// contentID returns the id of content that a commit names for the first time.
func (p *File) contentID(r *contentRef) (content.ID, error) {
	if r.body < 0 {
		return r.id, nil
	}
	if r.body < int64(len(p.proven)) && p.proven[r.body] != (content.ID{}) {
		return p.proven[r.body], nil
	}
	b, err := p.body(uint64(r.body))
	return content.Sum(b), err
}

// Object returns the block or chunk whose record was at an offset of a segment, in
// the frame at another offset.
func (p *File) Object(segment uint32, frame, record int64) (structure.Record, error) {
	n, err := p.find(segment, frame)
	if err != nil {
		return nil, err
	}
	rests := p.restsAt(n, segment, frame)
	behind := sort.Search(len(rests), func(i int) bool { return rests[i].rest.start+rests[i].rest.begin > record })
	var is piece
	if behind > 0 {
		is, err = p.restIn(n + behind)
	} else {
		is, err = p.locate(segment, frame)
	}
	if err != nil {
		return nil, err
	}
	c, x := is.c, is.x
	at := int(record - x.payloadAt())
	if x.verbatim {
		body, err := p.bodyIn(c, uint64(x.bodies[0]))
		if err != nil {
			return nil, err
		}
		size := 0
		if at >= 0 && at < len(body) {
			size = structure.RecordSize(body[at:])
		}
		if size == 0 || size > len(body)-at {
			return nil, p.corrupt(c.offset, fmt.Sprintf("no record was at byte %d of segment %d", record, segment))
		}
		return structure.DecodeObject(bytes.Clone(body[at:][:size]))
	}
	begins, err := p.places(is)
	if err != nil {
		return nil, err
	}
	i := sort.SearchInts(begins, at)
	if i == len(begins) || begins[i] != at {
		return nil, p.corrupt(c.offset, fmt.Sprintf("no record was at byte %d of segment %d", record, segment))
	}
	switch r := x.records[i].(type) {
	case *structure.Block:
		if x.bodies[i] < 0 {
			out := *r
			return &out, nil
		}
		body, err := p.bodyIn(c, uint64(x.bodies[i]))
		if err != nil {
			return nil, err
		}
		out := *r
		out.Body, out.ID = bytes.Clone(body), content.Sum(body)
		return &out, nil
	case *structure.Chunk:
		body, err := p.bodyIn(c, uint64(x.bodies[i]))
		if err != nil {
			return nil, err
		}
		return &structure.Chunk{Key: content.KeyOf(body), Bytes: bytes.Clone(body)}, nil
	}
	return nil, p.corrupt(c.offset, fmt.Sprintf("no content was at byte %d of segment %d", record, segment))
}
