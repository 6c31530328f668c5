package pack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// limits are how large chapters get. Packed is about the size of its bodies when they are
// compressed; 0 for any.
type limits struct {
	commits, records, bodies, text, packed int
}

var (
	// denseLimits keep the time that a chapter takes to expand within some 60 ms: 35 ms
	// for a compressed MiB.
	denseLimits = limits{commits: 1 << 14, records: 1 << 15, bodies: 16 << 20, text: 1 << 22, packed: 2 << 20}
	// firstLimits are those of the first chapter of other packs, their dictionary.
	firstLimits   = limits{commits: 1 << 12, records: 1 << 12, bodies: 1 << 20, text: 1 << 19}
	chapterLimits = limits{commits: 1 << 7, records: 1 << 8, bodies: 1 << 16, text: 1 << 13}
)

// Filter looks at a commit before it goes into a pack and changes it in place:
// it sets records that are to go to nil, or puts others in their place, which keep
// theirs. It must not change the number of records.
type Filter func(c *structure.Commit) error

// Frame is a commit as the journal holds it.
type Frame struct {
	Segment    uint32
	Start, End int64
	Number     uint64
	ID         uint64 // that commits have from this one on, 0 if the frame does not say
	Payload    []byte
	// PayloadOffset is where in its segment the payload starts.
	PayloadOffset int64
	// Offsets are where the records started in the payload when they were first
	// written, if that is not where they start now. It must not be changed.
	Offsets []int
}

// Writer makes a pack. It holds one chapter in memory, and the dictionary.
type Writer struct {
	// Unlisted packs do without what finds content and spans in them.
	Unlisted bool
	// Yield is called before each frame that is added or proven.
	Yield func()
	// Stop, when not nil, is asked every few milliseconds while bytes are compressed,
	// which may take seconds. Its error ends the work, and nothing can be added any more.
	Stop func() error

	file   io.WriterAt
	h      Header
	filter Filter
	at     int64
	rows   []row

	list    []*commit
	row     row // of the chapter in the making
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
	// identities are the ids of the commits.
	identities []identity

	sums    []uint32 // of the payloads, for the proof
	next    uint64
	nextRow place
}

// NewWriter begins a pack of the commits from h.FirstCommit on; its last is known
// in the end.
func NewWriter(file io.WriterAt, h Header, filter Filter) *Writer {
	w := &Writer{
		codec: codec{dense: h.Dense}, parity: make(parity, mostParity),
		file: file, h: h, filter: filter, at: headerSize, ids: map[[16]byte]uint32{}, derived: map[uint32]bool{}, known: map[content.ID]uint64{},
		next: h.FirstCommit, row: row{commit: h.FirstCommit, id: 1, offset: headerSize}, Yield: func() {},
	}
	return w
}

// Close lets go of memory. It is safe to repeat.
func (w *Writer) Close() {
	w.codec.close()
	w.packed.close()
}

// Add adds the next commit. It keeps nothing of the frame's memory.
func (w *Writer) Add(f Frame) error {
	if f.Number != w.next {
		return fmt.Errorf("pack: commit %d where %d is due", f.Number, w.next)
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

// limit is how large the chapter in the making may get.
func (w *Writer) limit() limits {
	switch {
	case w.h.Dense:
		return denseLimits
	case len(w.rows) == 0:
		return firstLimits
	}
	return chapterLimits
}

// full reports whether the chapter in the making is large enough.
func (w *Writer) full(limit limits) bool {
	return w.records >= limit.records || len(w.bodies) >= limit.bodies || w.text >= limit.text || limit.packed > 0 && w.packed.size >= limit.packed
}

// endsBefore reports whether a chapter ends before a record in the middle of a commit,
// behind which so many are left: rather before another thread than in one, of which the
// ids are in the chapter.
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

// begin makes a commit begin in the chapter in the making.
func (w *Writer) begin(x *commit) {
	w.row.commits++
	w.next++
	w.nextRow = place{number: w.next, segment: x.segment, end: x.end}
}

// end adds what the chapter in the making has of a commit.
func (w *Writer) end(x *commit) { w.list = append(w.list, x) }

// goOn ends a chapter in a commit and returns what the next one has of it.
func (w *Writer) goOn(x *commit, at, first int, last structure.SpanRef) (*commit, error) {
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

// commit takes a frame apart, and returns what its payload will be, and of the commit
// what the chapter in the making has. What is no commit that this program could have
// written is kept as it is.
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
		w.keep(x, f.Payload)
		w.lookup.add(f.Number, 0, recordsOf(f.Payload), true)
		return x, f.Payload, nil
	}
	x.millis, x.payload = c.Time.UnixMilli(), int64(len(payload))
	w.begin(x)
	x, err = w.take(x, c, begins, now)
	return x, payload, err
}

// decode returns the commit of a frame and where its records started at first.
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

// filtered returns what the filter leaves of a commit, and where that began.
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

// flush writes the chapter in the making.
func (w *Writer) flush() error {
	if len(w.list) == 0 {
		return nil
	}
	r := &w.row
	r.offset = w.at
	f := &former{
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
	for i, raw := range [][]byte{partIDs: ids, partColumns: fields, partContent: content} {
		b, err := w.codec.squeeze(raw)
		if err != nil {
			return err
		}
		if r.parts[i], err = w.part(b); err != nil {
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

// part writes bytes and their checksum; nothing for nothing.
func (w *Writer) part(b []byte) (part, error) {
	p := part{offset: w.at}
	if len(b) == 0 {
		return p, nil
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	p.size = int64(len(b))
	return p, w.write(b)
}

// write writes bytes behind what was written.
func (w *Writer) write(b []byte) error {
	if _, err := w.file.WriteAt(b, w.at); err != nil {
		return err
	}
	w.parity.add(b, w.at)
	w.at += int64(len(b))
	return nil
}

// Finish writes what is left and returns the size of the file, which it does not
// sync.
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
	f.finds, f.parity, f.header = uint32(len(directory)), uint32(len(spare)), headerSum(header)
	if _, err := w.part(spare); err != nil {
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

// proofCache is how much is kept decoded for a proof, so that usages of what other
// chapters hold do not expand these again and again.
const proofCache = 128 << 20

// Prove reads back everything that was written and compares it with what was
// handed in.
func (w *Writer) Prove(ctx context.Context, file io.ReaderAt, name string) error {
	w.Close()
	p, err := Open(file, w.at, name, NewCache(proofCache))
	if err != nil {
		return err
	}
	p.alone.stop = func() error { return context.Cause(ctx) }
	i := 0
	for f, err := range p.Frames(0, 0) {
		if ctx.Err() != nil {
			return context.Cause(ctx) // which looks like damage where it ended the expanding
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
	if w.Unlisted {
		return nil
	}
	return p.CheckSums()
}
