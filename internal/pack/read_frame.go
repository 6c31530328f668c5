package pack

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"sort"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// Frame is a commit in the journal.
type Frame struct {
	Segment    uint32
	Start, End int64
	Number     uint64
	ID         uint64 // of the commits from this one on, or 0 if the frame does not state it
	Payload    []byte
	// PayloadOffset is the offset of the payload in the segment.
	PayloadOffset int64
	// Offsets are the original offsets of the records in the payload, if they differ from
	// the current ones. They must not be changed.
	Offsets []int
}

// Frames yields the commits from a position on, in order. An error ends the
// sequence.
func (p *File) Frames(segment uint32, offset int64) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		n, err := p.chapterAt(segment, offset)
		if err != nil {
			yield(Frame{}, err)
			return
		}
		for ; n < len(p.rows); n++ {
			c, err := p.chapter(n)
			if err != nil {
				yield(Frame{}, err)
				return
			}
			for _, x := range c.commits {
				if x.Rest != nil || !x.StartsFrom(segment, offset) {
					continue
				}
				f, err := p.frame(commitPiece{c, x, n})
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}

// chapterAt returns the chapter that contains a position or begins after it.
func (p *File) chapterAt(segment uint32, offset int64) (int, error) {
	rows, err := p.table()
	if err != nil {
		return 0, err
	}
	n := sort.Search(len(rows), func(i int) bool {
		r := &rows[i]
		return r.Segment > segment || r.Segment == segment && r.End > offset
	}) - 1
	return max(n, 0), nil
}

// locate returns the commit of the frame at a position, or its first piece.
func (p *File) locate(segment uint32, offset int64) (commitPiece, error) {
	n, err := p.chapterAt(segment, offset)
	if err != nil {
		return commitPiece{}, err
	}
	for ; n < len(p.rows); n++ {
		c, err := p.chapter(n)
		if err != nil {
			return commitPiece{}, err
		}
		i := sort.Search(len(c.commits), func(i int) bool { return c.commits[i].StartsFrom(segment, offset) })
		if i == len(c.commits) {
			continue
		}
		if x := c.commits[i]; x.Segment == segment && x.Start == offset {
			return commitPiece{c, x, n}, nil
		}
		break
	}
	return commitPiece{}, p.corrupt(0, fmt.Sprintf("no commit was at byte %d of segment %d", offset, segment))
}

// Frame returns the commit of the frame at a position.
func (p *File) Frame(segment uint32, offset int64) (Frame, error) {
	at, err := p.locate(segment, offset)
	if err != nil {
		return Frame{}, err
	}
	return p.frame(at)
}

// frame returns the commit that begins with a piece.
func (p *File) frame(first commitPiece) (Frame, error) {
	x := first.x
	f := Frame{Segment: x.Segment, Start: x.Start, End: x.End, Number: x.Number, ID: layout.StatedBy(p.identities, x.Number), PayloadOffset: x.PayloadAt(), Offsets: x.Offsets}
	if x.Verbatim {
		body, err := p.bodyIn(first.c.bodies, uint64(x.Bodies[0]))
		f.Payload = bytes.Clone(body)
		return f, err
	}
	last, pieces := first, []commitPiece{first}
	for last.x.Open {
		var err error
		if last, err = p.after(last); err != nil {
			return f, err
		}
		pieces = append(pieces, last)
	}
	if len(pieces) > 1 {
		x = joined(pieces)
		f.Offsets = x.Offsets
	}
	var err error
	f.Payload, err = p.payload(x, pieces)
	if errors.Is(err, structure.ErrIncomplete) || errors.Is(err, layout.ErrForm) { // no written pack has such a record
		err = p.corrupt(last.c.Offset, err.Error())
	}
	if err == nil {
		if _, err = p.places(last); err == nil && int64(len(f.Payload)) != last.x.Payload {
			err = p.corrupt(last.c.Offset, layout.ErrForm.Error())
		}
	}
	return f, err
}

// payload encodes a commit with the bodies of its pieces, in order.
func (p *File) payload(x *columns.Commit, pieces []commitPiece) ([]byte, error) {
	var e structure.Encoder
	payload, _, err := x.Encode(&e, func(i int) (content.ID, []byte, error) {
		pieces = pieceOf(pieces, x.Bodies[i])
		body, err := p.bodyIn(pieces[0].c.bodies, uint64(x.Bodies[i]))
		if _, block := x.Records[i].(*structure.Block); !block || err != nil {
			return content.ID{}, body, err
		}
		id := content.Sum(body)
		if at := x.Bodies[i]; at < int64(len(p.proven)) {
			p.proven[at] = id
		}
		return id, body, nil
	}, p.contentID)
	return payload, err
}

// contentID returns the id of content that a commit names for the first time.
func (p *File) contentID(r *columns.ContentRef) (content.ID, error) {
	if r.Body < 0 {
		return r.ID, nil
	}
	if r.Body < int64(len(p.proven)) && p.proven[r.Body] != (content.ID{}) {
		return p.proven[r.Body], nil
	}
	in, err := p.bodiesWith(uint64(r.Body))
	if err != nil {
		return content.ID{}, err
	}
	return p.idOf(in, uint64(r.Body))
}
