package pack

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

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

// Filter changes a commit in place before it is packed: it sets dropped records to nil
// and may replace others; the replaced records must not be changed. It must not change
// the number of records.
type Filter func(c *structure.Commit) error

// Frame is a commit in the journal.
type Frame struct {
	Segment    uint32
	Start, End int64
	Number     uint64
	ID         uint64 // of the commits from this one on, or 0 if the frame does not state it
	Payload    []byte
	// PayloadOffset is the offset of the payload in the segment.
	PayloadOffset int64
	// Offsets are the original offsets of the records in the payload, if they differ from
	// the current ones. They must not be changed.
	Offsets []int
}

// Writer writes a pack. It keeps the current chapter and the dictionary in memory.
type Writer struct {
	// Unlisted packs have no lookup tables.
	Unlisted bool
	// Yield is called before each frame that is added or proven.
	Yield func()
	// Stop, if not nil, is called every few milliseconds during compression, which may
	// take seconds. Its error ends the work; then nothing can be added.
	Stop func() error

	file   io.WriterAt
	h      Header
	filter Filter
	at     int64
	rows   []row

	list    []*commit
	row     row // of the current chapter
	bodies  []byte
	records int
	text    int
	packed  estimate

	parity parity

	ids     map[[16]byte]uint32
	newIDs  []newID
	derived map[uint32]bool
	known   map[content.ID]uint64
	thread  structure.ThreadID // stated last
	lookup  lookup

	codec codec

	encoder structure.Encoder
	// identities are the stated commit ids.
	identities []identity

	sums    []uint32 // of the payloads, for Prove
	next    uint64
	nextRow place
}

// NewWriter starts a pack with the commit h.FirstCommit. LastCommit is set by Finish.
func NewWriter(file io.WriterAt, h Header, filter Filter) *Writer {
	w := &Writer{
		codec: codec{dense: h.Dense}, parity: make(parity, maxParity),
		file: file, h: h, filter: filter, at: headerSize, ids: map[[16]byte]uint32{}, derived: map[uint32]bool{}, known: map[content.ID]uint64{},
		next: h.FirstCommit, row: row{commit: h.FirstCommit, id: 1, offset: headerSize}, Yield: func() {},
	}
	return w
}

// Close releases memory. It may be called twice.
func (w *Writer) Close() {
	w.codec.close()
	w.packed.close()
}

// Add adds the next commit. It does not retain memory of the frame.
func (w *Writer) Add(f Frame) error {
	if f.Number != w.next {
		return fmt.Errorf("pack: commit %d instead of %d", f.Number, w.next)
	}
	w.Yield()
	w.identify(f)
	x, payload, err := w.commit(f)
	if err != nil {
		return fmt.Errorf("pack commit %d: %w", f.Number, err)
	}
	w.sums = append(w.sums, crc32.Checksum(payload, castagnoli))
	w.end(x)
	if limit := w.limit(); w.full(limit) || w.row.pieces() >= limit.commits {
		return w.flush()
	}
	return nil
}

// limit returns the limits of the current chapter.
func (w *Writer) limit() limits {
	switch {
	case w.h.Dense:
		return denseLimits
	case len(w.rows) == 0:
		return firstLimits
	}
	return chapterLimits
}

// full reports whether the current chapter is large enough.
func (w *Writer) full(limit limits) bool {
	return w.records >= limit.records || len(w.bodies) >= limit.bodies || w.text >= limit.text || limit.packed > 0 && w.packed.size >= limit.packed
}

// endsBefore reports whether the chapter ends before a record inside a commit, with left
// records to come. It prefers to end before another thread, because the chapter has the
// ids of the current one.
func (w *Writer) endsBefore(r structure.Record, left int) bool {
	limit := w.limit()
	if left <= limit.records/8 || r.Kind() == structure.KindSpan {
		return false
	}
	if t, ok := r.(*structure.Thread); ok && w.ids[t.ID] == 0 && t.ID != w.thread {
		return 4*w.records >= 3*limit.records || w.full(limit)
	}
	return w.full(limit) && 4*w.records >= 5*limit.records || w.full(limits{records: 1 << 30, bodies: limit.bodies, text: limit.text, packed: limit.packed})
}

// begin starts a commit in the current chapter.
func (w *Writer) begin(x *commit) {
	w.row.commits++
	w.next++
	w.nextRow = place{number: w.next, segment: x.segment, end: x.end}
}

// end adds a commit, or its piece, to the current chapter.
func (w *Writer) end(x *commit) { w.list = append(w.list, x) }

// nextPiece ends the chapter inside a commit and returns the commit's piece in the next
// one.
func (w *Writer) nextPiece(x *commit, at, first int, last structure.SpanRef) (*commit, error) {
	x.open = true
	w.end(x)
	w.row.until = x.end
	if err := w.flush(); err != nil {
		return nil, err
	}
	begin := x.payloadAt() - x.start + int64(first)
	w.row.rest = &rest{start: x.start, begin: begin, run: runByte(last.Run), seq: last.Seq}
	return &commit{
		number: x.number, segment: x.segment, start: x.start, end: x.end, lag: x.lag, millis: x.millis, rest: &before{at, last},
	}, nil
}

// commit converts a frame. It returns the commit or its last piece, and the resulting
// payload. A payload that this program could not have written is stored verbatim.
func (w *Writer) commit(f Frame) (*commit, []byte, error) {
	x := &commit{number: f.Number, segment: f.Segment, start: f.Start, end: f.End}
	x.lag = int(f.PayloadOffset - f.Start - int64(frameHeader+uvarintSize(f.Number<<1)))
	if x.lag < 0 || x.lag > 10 {
		return nil, nil, errForm
	}
	c, begins, err := decode(f)
	if err != nil && (w.filter != nil || f.Offsets != nil) {
		return nil, nil, err
	}
	changed := false
	if w.filter != nil {
		if c, begins, changed, err = w.filtered(c, begins); err != nil {
			return nil, nil, err
		}
	}
	var payload []byte
	var now []int
	if err == nil {
		payload, now, err = w.encoder.Encode(c)
	}
	if err != nil || !changed && string(payload) != string(f.Payload) {
		if changed || f.Offsets != nil {
			return nil, nil, errors.Join(err, errForm)
		}
		x.verbatim, x.payload = true, int64(len(f.Payload))
		w.begin(x)
		w.addBody(x, f.Payload)
		w.lookup.add(f.Number, 0, recordsOf(f.Payload), true)
		return x, f.Payload, nil
	}
	x.millis, x.payload = c.Time.UnixMilli(), int64(len(payload))
	w.begin(x)
	x, err = w.addRecords(x, c, begins, now)
	return x, payload, err
}

// decode returns the commit of a frame and the original offsets of its records.
func decode(f Frame) (*structure.Commit, []int, error) {
	d, err := structure.NewDecoder(f.Payload)
	if err != nil {
		return nil, nil, err
	}
	c := &structure.Commit{Number: f.Number, Time: d.Time}
	var begins []int
	for d.More() {
		at, r, err := d.Next()
		if err != nil {
			return nil, nil, err
		}
		begins = append(begins, at)
		c.Records = append(c.Records, r)
	}
	if f.Offsets != nil {
		if len(f.Offsets) != len(begins) {
			return nil, nil, errForm
		}
		begins = f.Offsets
	}
	return c, begins, nil
}

// filtered returns the filtered commit and the original offsets of its records.
func (w *Writer) filtered(c *structure.Commit, begins []int) (*structure.Commit, []int, bool, error) {
	before := append([]structure.Record(nil), c.Records...)
	if err := w.filter(c); err != nil {
		return nil, nil, false, err
	}
	if len(c.Records) != len(before) {
		return nil, nil, false, fmt.Errorf("the filter changed the number of records from %d to %d", len(before), len(c.Records))
	}
	kept := &structure.Commit{Number: c.Number, Time: c.Time}
	var places []int
	changed := false
	for i, r := range c.Records {
		if r != before[i] {
			changed = true
		}
		if r != nil {
			kept.Records, places = append(kept.Records, r), append(places, begins[i])
		}
	}
	if !changed {
		return c, begins, false, nil
	}
	return kept, places, true, nil
}

// flush writes the current chapter.
func (w *Writer) flush() error {
	if len(w.list) == 0 {
		return nil
	}
	r := &w.row
	r.offset = w.at
	f := &recordCoder{
		state: newState(r.id, r.body), c: newWriter(columns), number: w.number, derive: w.derive, bodies: w.bodies,
		look: func(id [16]byte) uint32 { return w.ids[id] },
	}
	f.commits(w.list, len(w.list), r.place())
	if f.err != nil {
		return f.err
	}
	var ids []byte
	if r.ids = len(w.newIDs); r.ids > 0 {
		c := newWriter(idColumns)
		codeIDs(c, w.newIDs, r.ids)
		ids = c.finish()
	}
	fields := f.c.finish()
	content := slices.Concat(f.laid[bodyText], f.laid[bodyOther], f.text)
	r.idBytes, r.columns, r.text = int64(len(ids)), int64(len(fields)), int64(len(f.text))
	r.laid = [bodyKinds]int64{int64(len(f.laid[bodyText])), int64(len(f.laid[bodyOther]))}
	w.codec.stop = w.Stop
	var packed [3][]byte
	for i, raw := range [][]byte{partIDs: ids, partColumns: fields, partContent: content} {
		b, err := w.codec.squeeze(raw)
		if err != nil {
			return err
		}
		packed[i] = withSum(b)
		r.parts[i].size = int64(len(packed[i]))
	}
	head := r.encodeHead(w.h)
	r.head = int64(len(head))
	r.layOut()
	for _, b := range append([][]byte{head}, packed[:]...) {
		if err := w.write(b); err != nil {
			return err
		}
	}
	if len(w.rows) == 0 && !w.h.Dense {
		w.codec.close()
		w.codec.encoder, w.codec.dict = nil, append(fields, content...)
	}
	w.lookup.chapter(len(numbered(w.list)))
	w.rows = append(w.rows, *r)
	w.row = row{commit: w.next, segment: w.nextRow.segment, end: w.nextRow.end, id: r.id + uint32(r.ids), body: r.body + r.bodies}
	w.list, w.newIDs, w.records, w.text, w.bodies = nil, nil, 0, 0, w.bodies[:0]
	w.packed.reset()
	return nil
}

// withSum returns the bytes with their checksum, or nothing for no bytes.
func withSum(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return summed(b, 0)
}

// write appends bytes to the file.
func (w *Writer) write(b []byte) error {
	if _, err := w.file.WriteAt(b, w.at); err != nil {
		return err
	}
	w.parity.add(b, w.at)
	w.at += int64(len(b))
	return nil
}

// Finish writes the rest and returns the size of the file. It does not sync.
func (w *Writer) Finish() (int64, error) {
	if err := w.flush(); err != nil {
		return 0, err
	}
	w.h.LastCommit = w.next - 1
	end := appendTable(appendIdentities(nil, w.h.FirstCommit, w.identities), w.rows)
	f := footer{offset: w.at, length: uint32(len(end)), sum: crc32.Checksum(end, castagnoli)}
	var finds, directory []byte
	if !w.Unlisted {
		finds, directory = w.lookup.encode(w.h.FirstCommit)
	}
	if err := w.write(slices.Concat(end, finds, directory)); err != nil {
		return 0, err
	}
	header := w.h.encode()
	w.parity.add(header, 0)
	spare := w.parity.fold(paritySize(w.at))
	f.directory, f.parity, f.header = uint32(len(directory)), uint32(len(spare)), headerSum(header)
	if err := w.write(withSum(spare)); err != nil {
		return 0, err
	}
	if err := w.write(slices.Concat(f.encode(), f.encode())); err != nil {
		return 0, err
	}
	if _, err := w.file.WriteAt(header, 0); err != nil {
		return 0, err
	}
	return w.at, nil
}

// proofCache is the size of the cache in Prove, which reads each chapter once.
const proofCache = 8 << 20

// Prove reads back everything that was written and compares it with the input.
func (w *Writer) Prove(ctx context.Context, file io.ReaderAt, name string) error {
	w.Close()
	p, err := Open(file, w.at, name, NewCache(proofCache))
	if err != nil {
		return err
	}
	p.alone.stop = func() error { return context.Cause(ctx) }
	p.proven = make([]content.ID, w.row.body)
	i := 0
	for f, err := range p.Frames(0, 0) {
		if ctx.Err() != nil {
			return context.Cause(ctx) // an interrupted decompression looks like damage
		}
		if err != nil {
			return err
		}
		w.Yield()
		if i >= len(w.sums) || f.Number != w.h.FirstCommit+uint64(i) || crc32.Checksum(f.Payload, castagnoli) != w.sums[i] {
			return fmt.Errorf("pack %s: commit %d does not read back", name, f.Number)
		}
		i++
	}
	if !slices.Equal(p.identities, w.identities) {
		return fmt.Errorf("pack %s: the ids of its commits do not read back", name)
	}
	if i != len(w.sums) {
		return fmt.Errorf("pack %s: %d commits of %d read back", name, i, len(w.sums))
	}
	if err := p.checkHeads(p.rows); err != nil {
		return err
	}
	if w.Unlisted {
		return nil
	}
	return p.CheckSums()
}
