package pack

import (
	"bytes"
	"sort"
	"sync"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// objects are the blocks and chunks of a chapter. They take a small part of its memory, and are all that messages of
// other chapters need of it. So a cache that has few chapters has the objects of many, and a message that names content of
// several chapters decodes one.
type objects struct {
	*bodies
	list []object // by number
	once sync.Once
	ids  []content.ID // of the bodies, in a dense pack
	err  error
}

// object is a block or chunk without its body.
type object struct {
	commit    uint64
	segment   uint32
	frame, at int64            // positions of its frame and of its record in the segment
	record    structure.Record // nil if it has to be searched for in a verbatim payload
	body      int64            // -1 for none
}

// The memory of objects, approximately.
const (
	objectCost = 64 + 208
	bodyCost   = 16 + int64(len(content.ID{}))
)

// objects returns the objects of a chapter.
func (p *File) objects(n int) (*objects, error) {
	k := cacheKey{&p.source, cachedObjects, uint64(n)}
	if o, ok, err := getOr[*objects](p.cache, k); ok || err != nil {
		return o, err
	}
	c, err := p.chapter(n)
	if err != nil {
		return nil, err
	}
	o := &objects{bodies: c.bodies}
	for _, place := range columns.Objects(c.commits) {
		x := c.commits[place.Commit]
		found := object{commit: x.Number, segment: x.Segment, frame: x.Start}
		if !x.Verbatim {
			places, err := p.places(piece{c, x, n})
			if err != nil {
				return nil, p.cache.fault(k, err)
			}
			found.at, found.record, found.body = x.PayloadAt()+int64(places[place.Record]), x.Records[place.Record], x.Bodies[place.Record]
		}
		o.list = append(o.list, found)
	}
	p.cache.put(k, o, int64(len(o.list))*objectCost+int64(len(o.places))*bodyCost+256)
	return o, nil
}

// objectsWith returns the objects of the chapter that has a body.
func (p *File) objectsWith(body uint64) (*objects, error) {
	rows, err := p.table()
	if err != nil {
		return nil, err
	}
	n := sort.Search(len(rows), func(i int) bool { return rows[i].Body > body }) - 1
	for n >= 0 && rows[n].Bodies == 0 {
		n--
	}
	if n < 0 || body >= rows[n].Body+rows[n].Bodies {
		return nil, p.corrupt(p.foot.TableAt, "a body is in no chapter")
	}
	return p.objects(n)
}

// idOf returns the content id of a body. In a dense pack the ids of all bodies of the chapter are computed together,
// because this takes less than expanding its content once more for another body.
func (p *File) idOf(o *objects, body uint64) (content.ID, error) {
	if !p.Dense || body-o.Body >= o.Bodies {
		b, err := p.bodyIn(o.bodies, body)
		return content.Sum(b), err
	}
	o.once.Do(func() {
		ids := make([]content.ID, o.Bodies)
		for i := range ids {
			b, err := p.bodyIn(o.bodies, o.Body+uint64(i))
			if err != nil {
				o.err = err
				return
			}
			ids[i] = content.Sum(b)
		}
		o.ids = ids
	})
	if o.err != nil {
		return content.ID{}, o.err
	}
	return o.ids[body-o.Body], nil
}

// placed returns the object whose record was at a position of a segment, or nil.
func (o *objects) placed(segment uint32, frame, record int64) *object {
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
func (p *File) whole(in *objects, x *object, start []byte) (structure.Record, error) {
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
