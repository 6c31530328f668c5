package pack

import (
	"github.com/lineage-store/lineage/structure"
)

// Flags of a frame.
const (
	frameGap     = 1 << iota // it does not start at the end of the one before
	frameTail                // it was longer when first written
	frameMoved               // its records had other offsets
	frameSegment             // it is the first of its segment in the chapter
)

// place is the position in the coding of frames.
type place struct {
	number  uint64 // of the next commit
	segment uint32
	end     int64 // of the frame before
	rest    *rest // of the commit before, if its rest comes first
	until   int64 // end of the frame that continues in the next chapter; 0 for none
}

// placeOf returns the position at the start of a chapter.
func placeOf(r *row) place {
	return place{number: r.commit, segment: r.segment, end: r.end, rest: r.rest, until: r.until}
}

// commits codes the frames of n consecutive commits. A reader passes no list and gets
// one.
func (f *recordCoder) commits(list []*commit, n int, at place) []*commit {
	var e structure.Encoder
	for i := range n {
		if f.err != nil || f.c.spent() {
			f.fail(errForm)
			return nil
		}
		x := &commit{}
		if f.c.writing {
			x = list[i]
		}
		x.open = i == n-1 && at.until > 0
		if at.rest != nil {
			f.rest(x, at, &e)
			at.rest = nil
		} else {
			at = f.frame(x, at, &e)
		}
		if !f.c.writing {
			list = append(list, x)
		}
	}
	return list
}

func (f *recordCoder) frame(x *commit, at place, e *structure.Encoder) place {
	var flags int
	if f.c.writing {
		if x.segment != at.segment {
			flags |= frameSegment
			at.end = segmentHeader
		}
		if x.start != at.end {
			flags |= frameGap
		}
		if x.offsets != nil {
			flags |= frameMoved
		}
		if !x.open && x.end != x.tight() {
			flags |= frameTail
		}
	}
	x.number = at.number
	flags = f.symbol(symbolFrame, flags)
	if flags&frameSegment != 0 {
		at.segment += uint32(f.num(fieldSegment, uint64(x.segment-at.segment)))
		at.end = segmentHeader
	}
	x.segment = at.segment
	if flags&frameGap != 0 {
		at.end += int64(f.num(fieldGap, uint64(x.start-at.end)))
	}
	x.start = at.end
	f.within(x, flags, e)
	if f.err != nil {
		return at
	}
	switch tight := x.tight(); {
	case x.open:
		x.end = at.until
	case flags&frameTail != 0:
		x.end = tight + f.signed(fieldTail, x.end-tight)
	default:
		x.end = tight
	}
	if x.end < x.start {
		f.fail(errForm)
	}
	return place{number: at.number + 1, segment: at.segment, end: x.end, until: at.until}
}

// rest codes the part of a commit that began in an earlier chapter.
func (f *recordCoder) rest(x *commit, at place, e *structure.Encoder) {
	flags := 0
	if f.c.writing {
		if x.offsets != nil {
			flags = frameMoved
		}
	} else {
		x.rest = new(before)
	}
	x.number, x.segment, x.start, x.end = at.number-1, at.segment, at.rest.start, at.end
	if flags = f.symbol(symbolFrame, flags); flags&^frameMoved != 0 {
		f.fail(errForm)
		return
	}
	x.rest.at = f.count(fieldGap, x.rest.at, maxBody)
	last := &x.rest.last
	f.at.run = f.anID(idRun, (*[16]byte)(&last.Run))
	last.Seq = f.num(fieldSeq, last.Seq)
	f.at.seq, f.at.seqs[f.at.run] = last.Seq, last.Seq
	f.within(x, flags, e)
}

// within codes the contents of a frame after its header.
func (f *recordCoder) within(x *commit, flags int, e *structure.Encoder) {
	x.lag = f.symbol(symbolLag, x.lag)
	x.millis = f.at.millis + f.signed(fieldTime, x.millis-f.at.millis)
	f.at.millis = x.millis
	f.records(x)
	if x.verbatim && (x.rest != nil || x.open) {
		f.fail(errForm)
	}
	if f.err != nil {
		return
	}
	if !f.c.writing {
		x.setPlaceholders()
		if x.rest == nil && !x.open { // otherwise its end is computed when needed
			if err := x.measure(e); err != nil {
				f.fail(err)
				return
			}
		}
	}
	if flags&frameMoved != 0 {
		last := 0
		if x.rest != nil {
			last = x.rest.at
		}
		for i := range x.records {
			if !f.c.writing {
				x.offsets = append(x.offsets, 0)
			}
			last += int(f.signed(fieldOffset, int64(x.offsets[i]-last)))
			x.offsets[i] = last
		}
	}
}

// records codes the records of a commit.
func (f *recordCoder) records(x *commit) {
	f.commit, f.used, f.names = x, 0, f.names[:0]
	n := len(x.records) + 1
	if x.verbatim {
		n = 0
	}
	if n = f.count(fieldRecords, n, maxRecords); n == 0 {
		x.verbatim = true
		if !f.c.writing {
			x.bodies, x.sizes = []int64{0}, []int64{0}
		}
		x.sizes[0] = f.body(bodyOther, x.sizes[0])
		x.bodies[0] = int64(f.at.nextBody)
		f.at.nextBody++
		return
	}
	if n < 64 && !f.c.writing {
		x.records, x.bodies, x.sizes = make([]structure.Record, 0, n), make([]int64, 0, n), make([]int64, 0, n)
	}
	for i := range n - 1 {
		if f.err != nil || f.c.spent() {
			f.fail(errForm)
			return
		}
		var r structure.Record
		var kind structure.Kind
		size := int64(-1)
		if f.c.writing {
			r = x.records[i]
			if kind = r.Kind(); x.bodies[i] >= 0 {
				size = x.sizes[i]
			}
		}
		kind = structure.Kind(f.kind(int(kind)))
		r, size = f.record(kind, r, size)
		body := int64(-1)
		if size >= 0 {
			body = int64(f.at.nextBody)
			f.at.nextBody++
		}
		if b, ok := r.(*structure.Block); ok {
			f.names = append(f.names, contentRef{body: body, id: b.ID})
		}
		switch {
		case f.c.writing:
			if x.bodies[i] != body {
				f.fail(errForm)
			}
		case size > maxBody:
			f.fail(errForm)
			return
		default:
			x.records = append(x.records, r)
			x.bodies = append(x.bodies, body)
			x.sizes = append(x.sizes, max(size, 0))
		}
	}
}

// kind codes the kind of a record.
func (f *recordCoder) kind(v int) int {
	const other = 15
	kind := f.c.symbol(columnKind, min(v, other))
	if kind == other {
		kind = int(f.num(fieldOffset, uint64(v)))
	}
	return kind
}
