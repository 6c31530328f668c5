package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/structure"
)

// limits are how large chapters get.
type limits struct {
	commits, records, bodies, text int
}

var (
	baseLimits    = limits{commits: 1 << 13, records: 1 << 15, bodies: 1 << 20, text: 1 << 19}
	denseLimits   = limits{commits: 1 << 14, records: 1 << 16, bodies: 1 << 22, text: 1 << 20}
	chapterLimits = limits{commits: 32, records: 128, bodies: 1 << 16, text: 1 << 13}
)

// What a group of bodies expands to, if no body is larger.
const (
	groupSize      = 16 << 10
	denseGroupSize = 4 << 10 // which takes longer to expand
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
	Payload    []byte
	// PayloadOffset is where in its segment the payload starts.
	PayloadOffset int64
	// Offsets are where the records started in the payload when they were first
	// written, if that is not where they start now. It must not be changed.
	Offsets []int
}

// Writer makes a pack. It holds one chapter in memory, and what the base taught.
type Writer struct {
	file   io.WriterAt
	h      Header
	filter Filter
	at     int64
	rows   []row

	list    []*commit
	row     row // of the chapter in the making
	bodies  []byte
	sizes   []int64
	records int
	text    int

	ids     map[[16]byte]uint32
	newIDs  [][16]byte
	known   map[content.ID]uint64
	threads scopes

	base    *state // nil before the base is written
	baseIDs *idState
	dict    dictionary

	encoder structure.Encoder
	sums    []uint32 // of the payloads, for the proof
	next    uint64
	nextRow place
}

// NewWriter begins a pack of the commits from h.FirstCommit on; its last is known
// in the end.
func NewWriter(file io.WriterAt, h Header, filter Filter) *Writer {
	w := &Writer{
		dict: dictionary{dense: h.Dense},
		file: file, h: h, filter: filter, at: headerSize, ids: map[[16]byte]uint32{}, known: map[content.ID]uint64{},
		next: h.FirstCommit, row: row{commit: h.FirstCommit, id: 1, offset: headerSize},
	}
	return w
}

// Close lets go of memory. It is safe to repeat.
func (w *Writer) Close() {
	w.dict.close()
}

// Add adds the next commit. It keeps nothing of the frame's memory.
func (w *Writer) Add(f Frame) error {
	if f.Number != w.next {
		return fmt.Errorf("pack: commit %d where %d is due", f.Number, w.next)
	}
	x, payload, err := w.commit(f)
	if err != nil {
		return fmt.Errorf("pack commit %d: %w", f.Number, err)
	}
	w.sums = append(w.sums, crc32.Checksum(payload, castagnoli))
	w.next++
	w.list = append(w.list, x)
	w.row.commits++
	w.records += len(x.records)
	w.nextRow = place{number: w.next, segment: f.Segment, end: f.End}
	limit := chapterLimits
	if w.base == nil {
		limit = baseLimits
		if w.h.Dense {
			limit = denseLimits
		}
	}
	if len(w.list) >= limit.commits || w.records >= limit.records || len(w.bodies) >= limit.bodies || w.text >= limit.text {
		return w.flush()
	}
	return nil
}

// commit takes a frame apart, and returns what its payload will be. What is no
// commit that this program could have written is kept as it is.
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
		x.verbatim = true
		w.keep(x, f.Payload)
		return x, f.Payload, nil
	}
	x.millis = c.Time.UnixMilli()
	if !slices.Equal(begins, now) {
		x.offsets = slices.Clone(begins)
	}
	w.take(x, c)
	return x, payload, nil
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

// keep adds a body.
func (w *Writer) keep(x *commit, b []byte) {
	x.bodies = append(x.bodies, int64(w.row.body+w.row.bodies))
	x.sizes = append(x.sizes, int64(len(b)))
	w.bodies = append(w.bodies, b...)
	w.sizes = append(w.sizes, int64(len(b)))
	w.row.bodies++
}

// take takes a commit's content out of its records.
func (w *Writer) take(x *commit, c *structure.Commit) {
	var blocks []content.ID
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Block:
			blocks = append(blocks, r.ID)
			b := *r
			b.Body = nil
			x.records = append(x.records, &b)
			if r.Tree.Size == 0 && !r.Gone() {
				w.known[r.ID] = w.row.body + w.row.bodies
				w.keep(x, r.Body)
				continue
			}
		case *structure.Chunk:
			x.records = append(x.records, &structure.Chunk{})
			w.keep(x, r.Bytes)
			continue
		case *structure.Span:
			for i := range r.Usages {
				x.content = append(x.content, w.contentOf(r.Usages[i].Content, blocks))
				w.text += len(r.Usages[i].Metadata) + len(r.Usages[i].SourceID)
			}
			x.records = append(x.records, copySpan(r))
		case *structure.Thread:
			w.threads.add(scope{r.ID, r.Incarnation})
			w.text += len(r.Metadata) + len(r.Title) + len(r.SourceID)
			x.records = append(x.records, copyPlain(r))
		default:
			w.text += 16
			x.records = append(x.records, copyPlain(r))
		}
		x.bodies = append(x.bodies, -1)
		x.sizes = append(x.sizes, 0)
	}
}

// copySpan and copyPlain return records that do not share the payload's memory.
func copySpan(s *structure.Span) *structure.Span {
	c := &structure.Span{Ref: s.Ref, Set: s.Set, Usages: append([]structure.Usage(nil), s.Usages...)}
	for i := range c.Usages {
		if m := c.Usages[i].Metadata; m != nil {
			c.Usages[i].Metadata = append([]byte{}, m...)
		}
	}
	return c
}

func copyPlain(r structure.Record) structure.Record {
	b, err := structure.MarshalRecord(r)
	if err != nil {
		return r // of a kind that has no bytes of its own
	}
	c, err := structure.UnmarshalRecord(r.Kind(), b)
	if err != nil {
		return r
	}
	return c
}

// contentOf finds out how a usage's content is named: as the encoder of commits
// does, where that names a block of the commit.
func (w *Writer) contentOf(id content.ID, blocks []content.ID) contentRef {
	const look = 64
	for back := 0; back < len(blocks) && back < look; back++ {
		if blocks[len(blocks)-1-back] == id {
			return contentRef{body: -1, back: back}
		}
	}
	if body, ok := w.known[id]; ok {
		return contentRef{body: int64(body), back: -1}
	}
	return contentRef{body: -1, back: -1, id: id}
}

// number returns the number of an id, which is the next when it is new.
func (w *Writer) number(id [16]byte) uint32 {
	if id == ([16]byte{}) {
		return 0
	}
	n, ok := w.ids[id]
	if !ok {
		n = w.row.id + uint32(len(w.newIDs))
		w.ids[id] = n
		w.newIDs = append(w.newIDs, id)
	}
	return n
}

// flush writes the chapter in the making.
func (w *Writer) flush() error {
	if len(w.list) == 0 {
		return nil
	}
	r := &w.row
	r.offset = w.at
	isBase := w.base == nil
	s, ids := newState(), newIDState()
	if !isBase {
		copied := *w.baseIDs
		s, ids = w.base, &copied
	}
	f := &former{
		state: s.begin(r.id, r.body), c: newWriter(), number: w.number,
		threads: w.threads.find, look: func(id [16]byte) uint32 { return w.ids[id] },
	}
	f.commits(w.list, len(w.list), place{number: r.commit, segment: r.segment, end: r.end})
	if f.err != nil {
		return f.err
	}
	c := newWriter()
	derived := make(map[int]bool, len(f.fromText))
	for _, n := range f.fromText {
		derived[int(n-r.id)] = true
	}
	ids.ids(c, w.newIDs, len(w.newIDs), derived)
	r.ids, r.text = len(w.newIDs), int64(len(f.text))
	var texts []byte
	var err error
	if isBase { // its texts are kept with its bodies
		w.bodies = append(w.bodies, f.text...)
	} else if texts, err = w.dict.next(f.text); err != nil {
		return err
	}
	for i, b := range [][]byte{c.finish(), f.c.finish(), texts} {
		if i == partIDs && r.ids == 0 {
			b = nil
		}
		if r.parts[i], err = w.part(b); err != nil {
			return err
		}
	}
	if err := w.groups(isBase); err != nil {
		return err
	}
	if isBase {
		w.base, w.baseIDs = f.state, ids
	}
	w.rows = append(w.rows, *r)
	w.row = row{commit: w.next, segment: w.nextRow.segment, end: w.nextRow.end, id: r.id + uint32(r.ids), body: r.body + r.bodies}
	w.list, w.bodies, w.sizes, w.newIDs, w.records, w.text = nil, w.bodies[:0], w.sizes[:0], nil, 0, 0
	return nil
}

// groups writes the chapter's bodies: those of the base as one group, with its
// texts behind them.
func (w *Writer) groups(isBase bool) error {
	r := &w.row
	raw := w.bodies
	if isBase {
		b, err := w.dict.begin(raw)
		if err != nil {
			return err
		}
		g := group{bodies: len(w.sizes), raw: int64(len(raw))}
		g.part, err = w.part(b)
		r.groups = []group{g}
		return err
	}
	most := int64(groupSize)
	if w.h.Dense {
		most = denseGroupSize
	}
	for i := 0; i < len(w.sizes); {
		g := group{body: r.body + uint64(i)}
		for ; i < len(w.sizes) && (g.bodies == 0 || g.raw+w.sizes[i] <= most); i++ {
			g.bodies++
			g.raw += w.sizes[i]
		}
		b, err := w.dict.next(raw[:g.raw])
		if err != nil {
			return err
		}
		raw = raw[g.raw:]
		if g.part, err = w.part(b); err != nil {
			return err
		}
		r.groups = append(r.groups, g)
	}
	return nil
}

// part writes bytes and their checksum; nothing for nothing.
func (w *Writer) part(b []byte) (part, error) {
	p := part{offset: w.at}
	if len(b) == 0 {
		return p, nil
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if _, err := w.file.WriteAt(b, w.at); err != nil {
		return p, err
	}
	p.size = int64(len(b))
	w.at += p.size
	return p, nil
}

// Finish writes what is left and returns the size of the file, which it does not
// sync.
func (w *Writer) Finish() (int64, error) {
	if err := w.flush(); err != nil {
		return 0, err
	}
	w.h.LastCommit = w.next - 1
	table := appendTable(nil, w.rows)
	f := footer{offset: w.at, length: uint32(len(table)), sum: crc32.Checksum(table, castagnoli)}
	header := w.h.encode()
	if _, err := w.file.WriteAt(append(table, f.encode(header)...), w.at); err != nil {
		return 0, err
	}
	w.at += int64(len(table)) + footerSize
	if _, err := w.file.WriteAt(header, 0); err != nil {
		return 0, err
	}
	return w.at, nil
}

// Prove reads back everything that was written and compares it with what was
// handed in.
func (w *Writer) Prove(file io.ReaderAt, name string) error {
	p, err := Open(file, w.at, name, NewCache(32<<20))
	if err != nil {
		return err
	}
	i := 0
	for f, err := range p.Frames(0, 0) {
		if err != nil {
			return err
		}
		if i >= len(w.sums) || f.Number != w.h.FirstCommit+uint64(i) || crc32.Checksum(f.Payload, castagnoli) != w.sums[i] {
			return fmt.Errorf("pack %s: commit %d does not read back", name, f.Number)
		}
		i++
	}
	if i != len(w.sums) {
		return fmt.Errorf("pack %s: %d commits of %d read back", name, i, len(w.sums))
	}
	return nil
}

// scopes are the threads that were seen, and which of them a run belongs to.
type scopes struct {
	list []scope // the latest last
	runs map[uint32]int
}

func (m *scopes) add(s scope) {
	if n := len(m.list); n == 0 || m.list[n-1] != s {
		m.list = append(m.list, s)
	}
}

// find returns the thread that gives an alias its value. It looks through many of
// them once for each run.
func (m *scopes) find(run uint32, a structure.Alias, source string) (scope, bool) {
	const most = 1 << 12
	at, tried := m.runs[run]
	if tried {
		return m.try(at, a, source)
	}
	if m.runs == nil {
		m.runs = map[uint32]int{}
	}
	for i := len(m.list) - 1; i >= 0 && i >= len(m.list)-most; i-- {
		if s, ok := m.try(i, a, source); ok {
			m.runs[run] = i
			return s, true
		}
	}
	m.runs[run] = -1
	return scope{}, false
}

func (m *scopes) try(i int, a structure.Alias, source string) (scope, bool) {
	if i < 0 || aliasOf(m.list[i], source) != a {
		return scope{}, false
	}
	return m.list[i], true
}
