package columns

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// Encode returns the payload, with bodies and ids from the functions.
func (x *Commit) Encode(e *structure.Encoder, body func(i int) (content.ID, []byte, error), id func(r *ContentRef) (content.ID, error)) ([]byte, []int, error) {
	out, err := x.whole(body, id)
	if err != nil {
		return nil, nil, err
	}
	return e.Encode(out)
}

// whole returns the commit, with bodies and ids from the functions.
func (x *Commit) whole(body func(i int) (content.ID, []byte, error), id func(r *ContentRef) (content.ID, error)) (*structure.Commit, error) {
	out := &structure.Commit{Number: x.Number, Time: time.UnixMilli(x.Millis).UTC(), Records: make([]structure.Record, len(x.Records))}
	names := naming{refs: x.Content, id: id}
	for i, r := range x.Records {
		switch r := r.(type) {
		case *structure.Block:
			if x.Bodies[i] < 0 {
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
	refs []ContentRef // still to resolve
	id   func(r *ContentRef) (content.ID, error)
}

// fill sets the ids of the next usages.
func (n *naming) fill(usages []structure.Usage) (err error) {
	var named [3]*content.ID
	for k := range usages {
		for _, to := range usages[k].Named(named[:0]) {
			r := &n.refs[0]
			n.refs = n.refs[1:]
			switch {
			case r.Back < 0:
				if *to, err = n.id(r); err != nil {
					return err
				}
				n.ids = append(n.ids, *to)
			case r.Back < len(n.ids):
				*to = n.ids[len(n.ids)-1-r.Back]
			default:
				return layout.ErrForm
			}
		}
	}
	return nil
}
