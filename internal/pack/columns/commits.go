package columns

import (
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// Flags of a frame.
const (
	frameGap     = 1 << iota // it does not start at the end of the one before
	frameTail                // it was longer when first written
	frameMoved               // its records had other offsets
	frameSegment             // it is the first of its segment in the chapter
)

// framePosition is the position in the coding of frames.
type framePosition struct {
	number  uint64 // of the next commit
	segment uint32
	end     int64        // of the frame before
	rest    *layout.Rest // of the commit before, if its rest comes first
	until   int64        // end of the frame that continues in the next chapter; 0 for none
}

// framePositionOf returns the position at the start of a chapter.
func framePositionOf(r *layout.ChapterRow) framePosition {
	return framePosition{number: r.Commit, segment: r.Segment, end: r.End, rest: r.Rest, until: r.Until}
}

// commits codes the frames of n consecutive commits. A reader passes no list and gets
// one.
func (f *recordCoder) commits(list []*Commit, n int, at framePosition) []*Commit {
	var e structure.Encoder
	for i := range n {
		if f.err != nil || f.c.spent() {
			f.fail(layout.ErrForm)
			return nil
		}
		x := &Commit{}
		if f.c.writing {
			x = list[i]
		}
		x.Open = i == n-1 && at.until > 0
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

// frame codes a commit in its frame, and returns the position of the next one.
func (f *recordCoder) frame(x *Commit, at framePosition, e *structure.Encoder) framePosition {
	flags := 0
	if f.c.writing {
		flags = at.flags(x)
	}
	flags = f.symbol(symbolFrame, flags)
	x.Number = at.number
	f.start(x, flags, at)
	f.contents(x, flags, e)
	if f.err != nil {
		return at
	}
	f.end(x, flags, at.until)
	return framePosition{number: at.number + 1, segment: x.Segment, end: x.End, until: at.until}
}

// flags returns the flags of the frame of a commit at a position.
func (p *framePosition) flags(x *Commit) (flags int) {
	start := p.end
	if x.Segment != p.segment {
		flags |= frameSegment
		start = SegmentHeader
	}
	if x.Start != start {
		flags |= frameGap
	}
	if x.Offsets != nil {
		flags |= frameMoved
	}
	if !x.Open && x.End != x.tight() {
		flags |= frameTail
	}
	return flags
}

// start codes the segment and the start of a frame.
func (f *recordCoder) start(x *Commit, flags int, at framePosition) {
	segment, start := at.segment, at.end
	if flags&frameSegment != 0 {
		segment += uint32(f.num(fieldSegment, uint64(x.Segment-segment)))
		start = SegmentHeader
	}
	if flags&frameGap != 0 {
		start += int64(f.num(fieldGap, uint64(x.Start-start)))
	}
	x.Segment, x.Start = segment, start
}

// end codes the end of a frame. until is the end of a frame that continues in the next chapter.
func (f *recordCoder) end(x *Commit, flags int, until int64) {
	switch tight := x.tight(); {
	case x.Open:
		x.End = until
	case flags&frameTail != 0:
		x.End = tight + f.signed(fieldTail, x.End-tight)
	default:
		x.End = tight
	}
	if x.End < x.Start && !f.unplaced {
		f.fail(layout.ErrForm)
	}
}

// rest codes the part of a commit that began in an earlier chapter.
func (f *recordCoder) rest(x *Commit, at framePosition, e *structure.Encoder) {
	flags := 0
	if f.c.writing {
		if x.Offsets != nil {
			flags = frameMoved
		}
	} else {
		x.Rest = new(before)
	}
	x.Number, x.Segment, x.Start, x.End = at.number-1, at.segment, at.rest.FrameStart, at.end
	if flags = f.symbol(symbolFrame, flags); flags&^frameMoved != 0 {
		f.fail(layout.ErrForm)
		return
	}
	x.Rest.at = f.count(fieldGap, x.Rest.at, maxBody)
	last := &x.Rest.last
	f.at.run = f.anID(idRun, (*[16]byte)(&last.Run))
	last.Seq = f.num(fieldSeq, last.Seq)
	f.at.seq, f.at.seqs[f.at.run] = last.Seq, last.Seq
	f.contents(x, flags, e)
}

// contents codes what follows the header of a frame.
func (f *recordCoder) contents(x *Commit, flags int, e *structure.Encoder) {
	x.lag = f.symbol(symbolLag, x.lag)
	x.Millis = f.at.millis + f.signed(fieldTime, x.Millis-f.at.millis)
	f.at.millis = x.Millis
	f.records(x)
	if x.Verbatim && (x.Rest != nil || x.Open) {
		f.fail(layout.ErrForm)
	}
	if f.err != nil {
		return
	}
	if !f.c.writing && !f.unplaced {
		x.setPlaceholders()
		if x.Rest == nil && !x.Open { // otherwise its end is computed when needed
			if err := x.measure(e); err != nil {
				f.fail(err)
				return
			}
		}
	}
	if flags&frameMoved != 0 {
		last := 0
		if x.Rest != nil {
			last = x.Rest.at
		}
		for i := range x.Records {
			if !f.c.writing {
				x.Offsets = append(x.Offsets, 0)
			}
			last += int(f.signed(fieldOffset, int64(x.Offsets[i]-last)))
			x.Offsets[i] = last
		}
	}
}

// records codes the records of a commit.
func (f *recordCoder) records(x *Commit) {
	f.commit, f.used, f.names = x, 0, f.names[:0]
	n := len(x.Records) + 1
	if x.Verbatim {
		n = 0
	}
	if n = f.count(fieldRecords, n, maxRecords); n == 0 {
		x.Verbatim = true
		if !f.c.writing {
			x.Bodies, x.Sizes = []int64{0}, []int64{0}
		}
		x.Sizes[0] = f.body(layout.BodyOther, x.Sizes[0])
		x.Bodies[0] = int64(f.at.nextBody)
		f.at.nextBody++
		return
	}
	if n < 64 && !f.c.writing {
		x.Records, x.Bodies, x.Sizes = make([]structure.Record, 0, n), make([]int64, 0, n), make([]int64, 0, n)
	}
	for i := range n - 1 {
		if f.err != nil || f.c.spent() {
			f.fail(layout.ErrForm)
			return
		}
		var r structure.Record
		var kind structure.Kind
		size := int64(-1)
		if f.c.writing {
			r = x.Records[i]
			if kind = r.Kind(); x.Bodies[i] >= 0 {
				size = x.Sizes[i]
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
			f.names = append(f.names, ContentRef{Body: body, ID: b.ID})
		}
		switch {
		case f.c.writing:
			if x.Bodies[i] != body {
				f.fail(layout.ErrForm)
			}
		case size > maxBody:
			f.fail(layout.ErrForm)
			return
		default:
			x.Records = append(x.Records, r)
			x.Bodies = append(x.Bodies, body)
			x.Sizes = append(x.Sizes, max(size, 0))
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
