package pack

import "slices"

// Encode returns the parts of a chapter with commits, whose bodies are given one after the other. It sets their
// sizes, and the number of ids, in the row.
func encodeChapter(r *row, commits []*commit, bodies []byte, ids *IDs) (parts [3][]byte, err error) {
	f := &recordCoder{state: newState(r.id, r.body), c: newWriter(columns), ids: ids, bodies: bodies}
	f.commits(commits, len(commits), placeOf(r))
	if f.err != nil {
		return parts, f.err
	}
	if r.ids = len(ids.fresh); r.ids > 0 {
		c := newWriter(idColumns)
		codeIDs(c, ids.fresh, r.ids)
		parts[partIDs] = c.finish()
	}
	parts[partColumns] = f.c.finish()
	parts[partContent] = slices.Concat(f.laid[bodyText], f.laid[bodyOther], f.text)
	r.idBytes, r.columns, r.text = int64(len(parts[partIDs])), int64(len(parts[partColumns])), int64(len(f.text))
	r.laid = [bodyKinds]int64{int64(len(f.laid[bodyText])), int64(len(f.laid[bodyOther]))}
	return parts, nil
}

// chapterRecords are the commits of a chapter, and the places and sizes of their bodies in its content.
type chapterRecords struct {
	commits       []*commit
	places, sizes []int64
}

// decodeIDs returns the n ids of a part.
func decodeIDs(b []byte, n int) ([]newID, error) {
	c := newReader(b, idColumns)
	ids := codeIDs(c, nil, n)
	if len(ids) != n || !c.complete() {
		return nil, errForm
	}
	return ids, nil
}

// decodeChapter returns the records of a chapter without their bodies. far returns the ids of earlier chapters.
func decodeChapter(r *row, ids []newID, fields, b []byte, far func(uint32) (newID, error)) (out chapterRecords, err error) {
	f := &recordCoder{state: newState(r.id, r.body), c: newReader(fields, columns)}
	for kind, n := range r.laid {
		f.laid[kind], b = b[:n:n], b[n:]
		if kind+1 < bodyKinds {
			f.begins[kind+1] = f.begins[kind] + n
		}
	}
	f.text = b

	f.id = func(n uint32) (newID, error) {
		switch {
		case n == 0:
			return newID{}, nil
		case n >= r.id && int(n-r.id) < len(ids):
			return ids[n-r.id], nil
		case n < r.id:
			return far(n)
		}
		return newID{}, errForm
	}
	out.commits = f.commits(nil, r.pieces(), placeOf(r))
	if f.err == nil && (len(f.text)+len(f.laid[bodyText])+len(f.laid[bodyOther]) > 0 || f.at.nextBody != r.body+r.bodies || !f.c.complete()) {
		f.err = errForm
	}
	out.places, out.sizes = f.places, f.sizes
	return out, f.err
}
