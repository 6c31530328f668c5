package pack

import (
	"io"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// limits are the limits of a chapter. packed limits the estimated compressed size of
// bodies; 0 for no limit.
type limits struct {
	commits, records, bodies, text, packed int
}

var (
	// denseLimits keep the time to decompress a chapter below some 60 ms, at 35 ms per
	// compressed MiB.
	denseLimits = limits{commits: 1 << 14, records: 1 << 15, bodies: 16 << 20, text: 1 << 22, packed: 2 << 20}
	// firstLimits apply to the first chapter of other packs, their dictionary.
	firstLimits   = limits{commits: 1 << 12, records: 1 << 12, bodies: 1 << 20, text: 1 << 19}
	chapterLimits = limits{commits: 1 << 7, records: 1 << 8, bodies: 1 << 16, text: 1 << 13}
)

// draft is the chapter that is being written, and what was written before it.
type draft struct {
	file   io.WriterAt
	h      Header
	stop   func() error // may be nil
	codec  codec
	at     int64 // the end of the file
	parity parity
	rows   []row
	ids    *IDs
	known  map[content.ID]uint64 // the bodies of blocks
	lookup lookup

	row     row
	list    []*commit
	bodies  []byte
	records int
	text    int
	packed  estimate
	thread  structure.ThreadID // stated last
	next    uint64             // the number of the next commit
	// Where the frame of the last commit ends.
	lastSegment uint32
	lastEnd     int64
}

func newDraft(file io.WriterAt, h Header) draft {
	return draft{
		file: file, h: h, codec: codec{dense: h.Dense}, at: headerSize, parity: make(parity, maxParity),
		ids: NewIDs(), known: map[content.ID]uint64{},
		next: h.FirstCommit, row: row{commit: h.FirstCommit, id: 1, offset: headerSize},
	}
}

// close releases memory. It may be called twice.
func (d *draft) close() {
	d.codec.close()
	d.packed.close()
}

// limit returns the limits of the current chapter.
func (d *draft) limit() limits {
	switch {
	case d.h.Dense:
		return denseLimits
	case len(d.rows) == 0:
		return firstLimits
	}
	return chapterLimits
}

// full reports whether the current chapter is large enough.
func (d *draft) full(limit limits) bool {
	return d.records >= limit.records || len(d.bodies) >= limit.bodies || d.text >= limit.text || limit.packed > 0 && d.packed.size >= limit.packed
}

// endsBefore reports whether the chapter ends before a record inside a commit, with left
// records to come. It prefers to end before another thread, because the chapter has the
// ids of the current one.
func (d *draft) endsBefore(r structure.Record, left int) bool {
	limit := d.limit()
	if left <= limit.records/8 || r.Kind() == structure.KindSpan {
		return false
	}
	if t, ok := r.(*structure.Thread); ok && !d.ids.Has(t.ID) && t.ID != d.thread {
		return 4*d.records >= 3*limit.records || d.full(limit)
	}
	return d.full(limit) && 4*d.records >= 5*limit.records || d.full(limits{records: 1 << 30, bodies: limit.bodies, text: limit.text, packed: limit.packed})
}

// begin starts a commit in the current chapter.
func (d *draft) begin(x *commit) {
	d.row.commits++
	d.next++
	d.lastSegment, d.lastEnd = x.segment, x.end
}

// end ends a commit, and the chapter if it is large enough.
func (d *draft) end(x *commit) error {
	d.list = append(d.list, x)
	if limit := d.limit(); d.full(limit) || d.row.pieces() >= limit.commits {
		return d.flush()
	}
	return nil
}

// nextPiece ends the chapter inside a commit and returns the commit's piece in the next
// one.
func (d *draft) nextPiece(x *commit, at, first int, last structure.SpanRef) (*commit, error) {
	x.open = true
	d.list = append(d.list, x)
	d.row.until = x.end
	if err := d.flush(); err != nil {
		return nil, err
	}
	begin := x.payloadAt() - x.start + int64(first)
	d.row.rest = &rest{start: x.start, begin: begin, run: runByte(last.Run), seq: last.Seq}
	return x.continued(at, last), nil
}

// flush writes the current chapter.
func (d *draft) flush() error {
	if len(d.list) == 0 {
		return nil
	}
	r := &d.row
	r.offset = d.at
	parts, err := encodeChapter(r, d.list, d.bodies, d.ids)
	if err != nil {
		return err
	}
	d.codec.stop = d.stop
	var packed [3][]byte
	for i, raw := range parts {
		b, err := d.codec.squeeze(raw)
		if err != nil {
			return err
		}
		packed[i] = withSum(b)
		r.parts[i].size = int64(len(packed[i]))
	}
	head := r.encodeHead(d.h)
	r.head = int64(len(head))
	r.layOut()
	for _, b := range append([][]byte{head}, packed[:]...) {
		if err := d.write(b); err != nil {
			return err
		}
	}
	if len(d.rows) == 0 && !d.h.Dense {
		d.codec.useDictionary(append(parts[partColumns], parts[partContent]...))
	}
	d.lookup.chapter(len(numbered(d.list)))
	d.rows = append(d.rows, *r)
	d.row = row{commit: d.next, segment: d.lastSegment, end: d.lastEnd, id: r.id + uint32(r.ids), body: r.body + r.bodies}
	d.ids.Next()
	d.list, d.records, d.text, d.bodies = nil, 0, 0, d.bodies[:0]
	d.packed.reset()
	return nil
}

// write appends bytes to the file.
func (d *draft) write(b []byte) error {
	if _, err := d.file.WriteAt(b, d.at); err != nil {
		return err
	}
	d.parity.add(b, d.at)
	d.at += int64(len(b))
	return nil
}
