package journal

import (
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Object returns the block or chunk whose record starts at an offset of a
// frame's segment. size is the approximate size of its body. The caller must
// compare its id.
func (r *Reader) Object(frame Position, record, size int64) (structure.Record, error) {
	v, release := r.with(frame.Segment)
	defer release()
	if s := v.find(frame.Segment); s != nil && s.pack != nil {
		r.segment, r.buf = s, nil
		return s.pack.Object(frame.Segment, frame.Offset, record)
	}
	const head = 512 // more than the rest of a typical record
	b, err := r.fetch(v, frame.Segment, record, size+head)
	if err != nil {
		return nil, err
	}
	whole := structure.RecordSize(b)
	if whole > len(b) {
		if b, err = r.fetch(v, frame.Segment, record, int64(whole)); err != nil {
			return nil, err
		}
	}
	if whole == 0 || whole > len(b) {
		return nil, &backend.CorruptError{File: r.Name(), Offset: record, What: "record is cut short"}
	}
	object, err := structure.DecodeObject(b[:whole:whole]) // the caller may append to it
	if err != nil {
		return nil, &backend.CorruptError{File: r.Name(), Offset: record, What: err.Error()}
	}
	return object, nil
}
