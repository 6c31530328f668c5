package pack

import (
	"bytes"
	"sort"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// objects are the blocks and chunks of a chapter. They take a small part of its memory: see bodies.
type objects struct {
	*bodies
	list []objectHead // by number
}

// objectHead is a block or chunk without its body.
type objectHead struct {
	commit    uint64
	segment   uint32
	frame, at int64            // positions of its frame and of its record in the segment
	record    structure.Record // nil if it has to be searched for in a verbatim payload
	body      int64            // -1 for none
}

// objectCost is the memory of an object, approximately.
const objectCost = 64 + 208

// objects returns the objects of a chapter.
func (p *File) objects(n int) (*objects, error) {
	k := cacheKey{&p.mendedFile, cachedObjects, uint64(n)}
	if o, ok, err := getOr[*objects](p.cache, k); ok || err != nil {
		return o, err
	}
	c, err := p.chapter(n)
	if err != nil {
		return nil, err
	}
	numbered := columns.Objects(c.commits)
	o := &objects{c.bodies, make([]objectHead, len(numbered))}
	places, placed := []int(nil), -1
	for i, at := range numbered {
		x := c.commits[at.Commit]
		o.list[i] = objectHead{commit: x.Number, segment: x.Segment, frame: x.Start}
		if x.Verbatim {
			continue
		}
		if at.Commit != placed {
			if places, err = p.places(commitPiece{c, x, n}); err != nil {
				return nil, p.cache.fault(k, err)
			}
			placed = at.Commit
		}
		o.list[i].at, o.list[i].record, o.list[i].body = x.PayloadAt()+int64(places[at.Record]), x.Records[at.Record], x.Bodies[at.Record]
	}
	p.cache.put(k, o, int64(len(o.list))*objectCost+o.bodies.cost())
	return o, nil
}

// placed returns the object whose record was at a position of a segment, or nil.
func (o *objects) placed(segment uint32, frame, record int64) *objectHead {
	i := sort.Search(len(o.list), func(i int) bool {
		x := &o.list[i]
		return x.segment > segment || x.segment == segment && (x.frame > frame || x.frame == frame && x.at >= record)
	})
	if i == len(o.list) || o.list[i].segment != segment || o.list[i].frame != frame || o.list[i].at != record {
		return nil
	}
	return &o.list[i]
}

// whole returns the record of an object with its body and the hash of that, or nil if the hash does not begin with start.
func (p *File) whole(in *objects, x *objectHead, start []byte) (structure.Record, error) {
	var body []byte
	if x.body >= 0 {
		var err error
		if body, err = p.bodyIn(in.bodies, uint64(x.body)); err != nil {
			return nil, err
		}
	}
	switch r := x.record.(type) {
	case *structure.Block:
		out := *r
		if x.body >= 0 {
			out.ID = content.Sum(body)
		}
		if !bytes.HasPrefix(out.ID[:], start) {
			return nil, nil
		}
		if x.body >= 0 {
			out.Body = bytes.Clone(body)
		}
		return &out, nil
	case *structure.Chunk:
		if key := content.KeyOf(body); bytes.HasPrefix(key[:], start) {
			return &structure.Chunk{Key: key, Bytes: bytes.Clone(body)}, nil
		}
		return nil, nil
	}
	return nil, layout.ErrForm
}
