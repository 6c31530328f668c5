package columns

import (
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// Encode returns the payload, with bodies and ids from the functions.
func (x *Commit) Encode(e *structure.Encoder, body func(i int) (content.ID, []byte, error), id func(r *ContentRef) (content.ID, error)) ([]byte, []int, error) {
	out, err := x.whole(body, id, false)
	if err != nil {
		return nil, nil, err
	}
	return e.Encode(out)
}

// Complete returns the commit as a decoder of its payload does, with bodies and ids from the functions. It has the records
// of x, which must not be used afterwards.
func (x *Commit) Complete(body func(i int) (content.ID, []byte, error), id func(r *ContentRef) (content.ID, error)) (*structure.Commit, error) {
	return x.whole(body, id, true)
}

// whole returns the commit, with bodies and ids from the functions. It has records of its own, or those of x.
func (x *Commit) whole(body func(i int) (content.ID, []byte, error), id func(r *ContentRef) (content.ID, error), same bool) (*structure.Commit, error) {
	out := &structure.Commit{Number: x.Number, Time: time.UnixMilli(x.Millis).UTC(), Records: x.Records}
	if !same {
		out.Records = slices.Clone(x.Records)
	}
	names := naming{refs: x.Content, id: id}
	for i, r := range out.Records {
		switch r := r.(type) {
		case *structure.Block:
			if x.Bodies[i] < 0 {
				names.ids = append(names.ids, r.ID)
				continue
			}
			known, b, err := body(i)
			if err != nil {
				return nil, err
			}
			if !same {
				c := *r
				r, out.Records[i] = &c, &c
			}
			r.ID, r.Body, r.Size = known, b, int64(len(b))
			names.ids = append(names.ids, known)
		case *structure.Chunk:
			_, b, err := body(i)
			if err != nil {
				return nil, err
			}
			if !same {
				r = new(structure.Chunk)
				out.Records[i] = r
			}
			r.Key, r.Bytes = content.KeyOf(b), b
		case *structure.Span:
			if !same {
				r = &structure.Span{Ref: r.Ref, Set: r.Set, Usages: slices.Clone(r.Usages)}
				out.Records[i] = r
			}
			if err := names.fill(r.Usages); err != nil {
				return nil, err
			}
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
