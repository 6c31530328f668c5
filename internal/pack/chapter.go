package pack

import (
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// Flags of a frame.
const (
	frameGap     = 1 << iota // it does not start at the end of the one before
	frameTail                // it was longer when first written
	frameMoved               // its records had other offsets
	frameSegment             // it is the first of its segment in the chapter
)

const (
	segmentHeader = 64 // of a journal segment; its first frame follows
	frameHeader   = 8
)

// place is the position in the coding of frames.
type place struct {
	number  uint64 // of the next commit
	segment uint32
	end     int64 // of the frame before
	rest    *rest // of the commit before, if its rest comes first
	until   int64 // end of the frame that continues in the next chapter; 0 for none
}

// place is the position at the start of a chapter.
func (r *row) place() place {
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

// maxBody is the largest size of a body or payload.
const maxBody = 1 << 30

// kind codes the kind of a record.
func (f *recordCoder) kind(v int) int {
	const other = 15
	kind := f.c.symbol(columnKind, min(v, other))
	if kind == other {
		kind = int(f.num(fieldOffset, uint64(v)))
	}
	return kind
}

// tight is the end of the commit's frame if it was written now.
func (x *commit) tight() int64 { return x.payloadAt() + x.payload }

// payloadAt is the start of the payload.
func (x *commit) payloadAt() int64 {
	return x.start + frameHeader + int64(uvarintSize(x.number<<1)) + int64(x.lag)
}

func uvarintSize(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

// setPlaceholders sets bodies and ids that are not decoded yet: empty bodies, and
// placeholder ids that distinguish contents.
func (x *commit) setPlaceholders() {
	var names []content.ID
	if x.rest != nil {
		names = slices.Clone(earlier)
	}
	used := 0
	for i, r := range x.records {
		switch r := r.(type) {
		case *structure.Block:
			if x.bodies[i] >= 0 {
				r.ID, r.Body = placeholder(placeholderBlock, i), noBody
			}
			names = append(names, r.ID)
		case *structure.Span:
			var named [3]*content.ID
			for k := range r.Usages {
				for _, id := range r.Usages[k].Named(named[:0]) {
					back := x.content[used].back
					if back < 0 {
						names, back = append(names, placeholder(placeholderName, used)), 0
					}
					*id = names[len(names)-1-back]
					used++
				}
			}
		}
	}
}

// measure computes the offsets of the records in the payload, and its size.
func (x *commit) measure(e *structure.Encoder) error {
	if x.verbatim {
		x.payload = x.sizes[0]
		return nil
	}
	c := &structure.Commit{Time: time.UnixMilli(x.millis).UTC(), Records: x.records}
	if x.rest != nil {
		payload, begins, err := e.EncodeRest(c, x.rest.last, earlier)
		if err == nil {
			x.measured(payload, begins, x.rest.at)
		}
		return err
	}
	payload, begins, err := e.Encode(c)
	if err == nil {
		x.measured(payload, begins, 0)
	}
	return err
}

// measured sets offsets and size from a payload without bodies. moved is the size of
// everything before it.
func (x *commit) measured(payload []byte, begins []int, moved int) {
	x.begins = make([]int, len(begins))
	for i, at := range begins {
		x.begins[i] = at + moved
		if size := int(x.sizes[i]); size > 0 {
			end := len(payload)
			if i+1 < len(begins) {
				end = begins[i+1]
			}
			moved += grown(end-at, size)
		}
	}
	x.payload = int64(len(payload) + moved)
}

// noBody is a body that is not decoded: empty, but not nil, which would mean erased.
var noBody = []byte{}

// Kinds of placeholder ids, for ids that are not decoded yet.
const (
	placeholderBlock = 0xfc + iota
	placeholderName
	placeholderEarlier
)

// placeholder returns a placeholder id.
func placeholder(kind byte, i int) content.ID {
	return content.ID{0: kind, 31: kind, 1: byte(i), 2: byte(i >> 8), 3: byte(i >> 16), 4: byte(i >> 24)}
}

// earlier are placeholders for the ids named before the rest of a commit.
var earlier = func() (ids []content.ID) {
	for i := range structure.NamesBack {
		ids = append(ids, placeholder(placeholderEarlier, i))
	}
	return slices.Clip(ids)
}()

// grown returns by how much a record grows when its body of a size is added.
func grown(record, size int) int {
	for v := 1; ; v++ {
		if inner := record - 1 - v; uvarintSize(uint64(inner)) == v {
			return size + uvarintSize(uint64(inner+size)) - v
		} else if inner < 0 {
			return size // no record
		}
	}
}

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
