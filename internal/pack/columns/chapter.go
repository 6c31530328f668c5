package columns

import (
	"slices"

	"github.com/lineage-store/lineage/internal/pack/layout"
)

// Encode returns the parts of a chapter with commits, whose bodies are given one after the other. It sets their
// sizes, and the number of ids, in the row.
func Encode(r *layout.ChapterRow, commits []*Commit, bodies []byte, ids *IDs) (parts [3][]byte, err error) {
	f := &recordCoder{coderState: newState(r.ID, r.Body), c: newWriter(columns), ids: ids, bodies: bodies}
	f.commits(commits, len(commits), framePositionOf(r))
	if f.err != nil {
		return parts, f.err
	}
	if r.IDs = len(ids.fresh); r.IDs > 0 {
		c := newWriter(idColumns)
		codeIDs(c, ids.fresh, r.IDs)
		parts[layout.PartIDs] = c.finish()
	}
	parts[layout.PartColumns] = f.c.finish()
	parts[layout.PartContent] = slices.Concat(f.laid[layout.BodyText], f.laid[layout.BodyOther], f.text)
	r.IDBytes, r.Columns, r.Text = int64(len(parts[layout.PartIDs])), int64(len(parts[layout.PartColumns])), int64(len(f.text))
	r.Laid = [layout.BodyKinds]int64{int64(len(f.laid[layout.BodyText])), int64(len(f.laid[layout.BodyOther]))}
	return parts, nil
}

// Chapter has the commits of a chapter, and the places and sizes of their bodies in its content.
type Chapter struct {
	Commits       []*Commit
	Places, Sizes []int64
}

// DecodeIDs returns the n ids of a part.
func DecodeIDs(b []byte, n int) ([]ID, error) {
	c := newReader(b, idColumns)
	ids := codeIDs(c, nil, n)
	if len(ids) != n || !c.complete() {
		return nil, layout.ErrForm
	}
	return ids, nil
}

// Decode returns the records of a chapter without their bodies. far returns the ids of earlier chapters. Without places,
// the commits cannot tell where their frames and records were.
func Decode(r *layout.ChapterRow, ids []ID, fields, b []byte, places bool, far func(uint32) (ID, error)) (out Chapter, err error) {
	f := &recordCoder{coderState: newState(r.ID, r.Body), c: newReader(fields, columns), unplaced: !places}
	for kind, n := range r.Laid {
		f.laid[kind], b = b[:n:n], b[n:]
		if kind+1 < layout.BodyKinds {
			f.begins[kind+1] = f.begins[kind] + n
		}
	}
	f.text = b

	f.id = func(n uint32) (ID, error) {
		switch {
		case n == 0:
			return ID{}, nil
		case n >= r.ID && int(n-r.ID) < len(ids):
			return ids[n-r.ID], nil
		case n < r.ID:
			return far(n)
		}
		return ID{}, layout.ErrForm
	}
	out.Commits = f.commits(nil, r.Pieces(), framePositionOf(r))
	if f.err == nil && (len(f.text)+len(f.laid[layout.BodyText])+len(f.laid[layout.BodyOther]) > 0 || f.at.nextBody != r.Body+r.Bodies || !f.c.complete()) {
		f.err = layout.ErrForm
	}
	out.Places, out.Sizes = f.places, f.sizes
	return out, f.err
}
