package pack

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// encode returns the payload, with bodies and ids from the functions.
func (x *commit) encode(e *structure.Encoder, body func(i int) (content.ID, []byte, error), id func(r *contentRef) (content.ID, error)) ([]byte, []int, error) {
	out, err := x.whole(body, id)
	if err != nil {
		return nil, nil, err
	}
	return e.Encode(out)
}

// whole returns the commit, with bodies and ids from the functions.
func (x *commit) whole(body func(i int) (content.ID, []byte, error), id func(r *contentRef) (content.ID, error)) (*structure.Commit, error) {
	out := &structure.Commit{Number: x.number, Time: time.UnixMilli(x.millis).UTC(), Records: make([]structure.Record, len(x.records))}
	names := naming{refs: x.content, id: id}
	for i, r := range x.records {
		switch r := r.(type) {
		case *structure.Block:
			if x.bodies[i] < 0 {
				names.ids = append(names.ids, r.ID)
				out.Records[i] = r
				continue
			}
			known, b, err := body(i)
			if err != nil {
				return nil, err
			}
			c := *r
			c.ID, c.Body, c.Size = known, b, int64(len(b))
			names.ids = append(names.ids, known)
			out.Records[i] = &c
		case *structure.Chunk:
			_, b, err := body(i)
			if err != nil {
				return nil, err
			}
			out.Records[i] = &structure.Chunk{Bytes: b}
		case *structure.Span:
			s := &structure.Span{Ref: r.Ref, Set: r.Set, Usages: append([]structure.Usage(nil), r.Usages...)}
			if err := names.fill(s.Usages); err != nil {
				return nil, err
			}
			out.Records[i] = s
		default:
			out.Records[i] = r
		}
	}
	return out, nil
}

// naming resolves the content ids that the usages of a commit name.
type naming struct {
	ids  []content.ID // named by the commit so far
	refs []contentRef // still to resolve
	id   func(r *contentRef) (content.ID, error)
}

// fill sets the ids of the next usages.
func (n *naming) fill(usages []structure.Usage) (err error) {
	var named [3]*content.ID
	for k := range usages {
		for _, to := range usages[k].Named(named[:0]) {
			r := &n.refs[0]
			n.refs = n.refs[1:]
			switch {
			case r.back < 0:
				if *to, err = n.id(r); err != nil {
					return err
				}
				n.ids = append(n.ids, *to)
			case r.back < len(n.ids):
				*to = n.ids[len(n.ids)-1-r.back]
			default:
				return errForm
			}
		}
	}
	return nil
}
