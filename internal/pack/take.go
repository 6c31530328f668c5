package pack

import (
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/structure"
)

// addBody adds a body.
func (d *draft) addBody(x *columns.Commit, b []byte) {
	x.Bodies = append(x.Bodies, int64(d.row.Body+d.row.Bodies))
	x.Sizes = append(x.Sizes, int64(len(b)))
	d.bodies = append(d.bodies, b...)
	d.row.Bodies++
	if d.h.Dense {
		d.packed.Add(b)
	}
}

// addRecords adds the records of a commit, and its content separately. offsets are the
// original offsets of the records, now the current ones. It returns the last piece of
// the commit, which is in the current chapter.
func (d *draft) addRecords(x *columns.Commit, c *structure.Commit, offsets, now []int) (*columns.Commit, error) {
	moved := !slices.Equal(offsets, now)
	var names structure.Names
	var last structure.SpanRef
	from, piece := 0, 0
	for i, r := range c.Records {
		if i > 0 && d.endsBefore(r, len(c.Records)-i) {
			d.lookup.Add(x.Number, piece, c.Records[from:i], false)
			from, piece = i, piece+1
			var err error
			if x, err = d.nextPiece(x, now[i], offsets[i], last); err != nil {
				return nil, err
			}
		}
		if moved {
			x.Offsets = append(x.Offsets, offsets[i])
		}
		d.records++
		switch r := r.(type) {
		case *structure.Block:
			names.Add(r.ID)
			b := *r
			b.Body = nil
			x.Records = append(x.Records, &b)
			if r.Tree.Size == 0 && !r.Gone() {
				d.known[d.hash(r.ID)] = d.row.Body + d.row.Bodies
				d.addBody(x, r.Body)
				continue
			}
		case *structure.Chunk:
			x.Records = append(x.Records, &structure.Chunk{})
			d.addBody(x, r.Bytes)
			continue
		case *structure.Span:
			last = r.Ref
			d.addUsages(x, r, &names)
			x.Records = append(x.Records, copySpan(r))
		case *structure.Thread:
			d.thread = r.ID
			d.text += len(r.Metadata) + len(r.Title) + len(r.SourceID)
			x.Records = append(x.Records, copyPlain(r))
		default:
			d.text += 16
			x.Records = append(x.Records, copyPlain(r))
		}
		x.Bodies = append(x.Bodies, -1)
		x.Sizes = append(x.Sizes, 0)
	}
	d.lookup.Add(x.Number, piece, c.Records[from:], false)
	return x, nil
}

// addUsages adds the content that a span uses, and counts its texts.
func (d *draft) addUsages(x *columns.Commit, s *structure.Span, names *structure.Names) {
	var named [3]*content.ID
	for i := range s.Usages {
		u := &s.Usages[i]
		for _, id := range u.Named(named[:0]) {
			x.Content = append(x.Content, d.contentOf(*id, names))
		}
		d.text += len(u.Metadata) + len(u.SourceID)
		for _, extra := range u.Extras {
			d.text += len(extra)
		}
	}
}

// copySpan and copyPlain return records that do not share memory with the payload.
func copySpan(s *structure.Span) *structure.Span {
	c := &structure.Span{Ref: s.Ref, Set: s.Set, Usages: append([]structure.Usage(nil), s.Usages...)}
	for i := range c.Usages {
		c.Usages[i].CloneBytes()
	}
	return c
}

func copyPlain(r structure.Record) structure.Record {
	b, err := structure.MarshalRecord(r)
	if err != nil {
		return r // of a kind without an encoding of its own
	}
	c, err := structure.UnmarshalRecord(r.Kind(), b)
	if err != nil {
		return r
	}
	return c
}

// contentOf returns how a usage's content is named: as in the encoding of commits if
// the commit named it before.
func (d *draft) contentOf(id content.ID, names *structure.Names) columns.ContentRef {
	r := columns.ContentRef{Body: -1, Back: names.Back(id), ID: id}
	if body, ok := d.known[d.hash(id)]; ok {
		r.Body = int64(body)
	}
	if r.Back < 0 {
		names.Add(id)
	}
	return r
}
