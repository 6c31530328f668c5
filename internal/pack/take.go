package pack

import (
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// addBody adds a body.
func (w *Writer) addBody(x *commit, b []byte) {
	x.bodies = append(x.bodies, int64(w.row.body+w.row.bodies))
	x.sizes = append(x.sizes, int64(len(b)))
	w.bodies = append(w.bodies, b...)
	w.row.bodies++
	if w.h.Dense {
		w.packed.add(b)
	}
}

// addRecords adds the records of a commit, and its content separately. begins are the
// original offsets of the records, now the current ones. It returns the last piece of
// the commit, which is in the current chapter.
func (w *Writer) addRecords(x *commit, c *structure.Commit, begins, now []int) (*commit, error) {
	moved := !slices.Equal(begins, now)
	var names structure.Names
	var last structure.SpanRef
	from, piece := 0, 0
	for i, r := range c.Records {
		if i > 0 && w.endsBefore(r, len(c.Records)-i) {
			w.lookup.add(x.number, piece, c.Records[from:i], false)
			from, piece = i, piece+1
			var err error
			if x, err = w.nextPiece(x, now[i], begins[i], last); err != nil {
				return nil, err
			}
		}
		if moved {
			x.offsets = append(x.offsets, begins[i])
		}
		w.records++
		switch r := r.(type) {
		case *structure.Block:
			names.Add(r.ID)
			b := *r
			b.Body = nil
			x.records = append(x.records, &b)
			if r.Tree.Size == 0 && !r.Gone() {
				w.known[r.ID] = w.row.body + w.row.bodies
				w.addBody(x, r.Body)
				continue
			}
		case *structure.Chunk:
			x.records = append(x.records, &structure.Chunk{})
			w.addBody(x, r.Bytes)
			continue
		case *structure.Span:
			last = r.Ref
			var named [3]*content.ID
			for i := range r.Usages {
				u := &r.Usages[i]
				for _, id := range u.Named(named[:0]) {
					x.content = append(x.content, w.contentOf(*id, &names))
				}
				w.text += len(u.Metadata) + len(u.SourceID)
				for _, extra := range u.Extras {
					w.text += len(extra)
				}
			}
			x.records = append(x.records, copySpan(r))
		case *structure.Thread:
			w.thread = r.ID
			w.text += len(r.Metadata) + len(r.Title) + len(r.SourceID)
			x.records = append(x.records, copyPlain(r))
		default:
			w.text += 16
			x.records = append(x.records, copyPlain(r))
		}
		x.bodies = append(x.bodies, -1)
		x.sizes = append(x.sizes, 0)
	}
	w.lookup.add(x.number, piece, c.Records[from:], false)
	return x, nil
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
func (w *Writer) contentOf(id content.ID, names *structure.Names) contentRef {
	r := contentRef{body: -1, back: names.Back(id), id: id}
	if body, ok := w.known[id]; ok {
		r.body = int64(body)
	}
	if r.back < 0 {
		names.Add(id)
	}
	return r
}

// derive records the source that an id is derived from. It returns false if an earlier
// chapter has the id without the source.
func (w *Writer) derive(id [16]byte, source string) bool {
	n := w.number(id)
	if n < w.row.id {
		return w.derived[n]
	}
	w.newIDs[n-w.row.id].source = source
	w.derived[n] = true
	return true
}

// number returns the number of an id. A new id gets the next number.
func (w *Writer) number(id [16]byte) uint32 {
	if id == ([16]byte{}) {
		return 0
	}
	n, ok := w.ids[id]
	if !ok {
		n = w.row.id + uint32(len(w.newIDs))
		w.ids[id] = n
		w.newIDs = append(w.newIDs, newID{id: id})
	}
	return n
}
