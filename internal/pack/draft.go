package pack

import (
	"hash/maphash"
	"io"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/compress"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
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
	// quickLimits halve what each chapter costs in addition to its content: tables of the compressor, copies of the dictionary.
	quickLimits = limits{commits: 1 << 8, records: 1 << 9, bodies: 1 << 17, text: 1 << 14}
)

// draft is the chapter that is being written, and what was written before it.
type draft struct {
	file   io.WriterAt
	h      layout.Header
	stop   func() error // may be nil
	codec  compress.Codec
	at     int64 // the end of the file
	parity layout.Parity
	rows   []layout.ChapterRow
	ids    *columns.IDs
	seed   maphash.Seed
	known  map[uint64]uint64 // the bodies of blocks, by hash: see hash
	lookup lookup.Builder

	row     layout.ChapterRow
	list    []*columns.Commit
	bodies  []byte
	records int
	text    int
	packed  compress.Estimate
	thread  structure.ThreadID // stated last
	next    uint64             // the number of the next commit
	// Where the frame of the last commit ends.
	lastSegment uint32
	lastEnd     int64
}

func newDraft(file io.WriterAt, h layout.Header) draft {
	return draft{
		file: file, h: h, codec: compress.Codec{Dense: h.Dense}, at: layout.HeaderSize, parity: make(layout.Parity, layout.MaxParity),
		ids: columns.NewIDs(), seed: maphash.MakeSeed(), known: map[uint64]uint64{},
		next: h.FirstCommit, row: layout.ChapterRow{Commit: h.FirstCommit, ID: 1, Offset: layout.HeaderSize},
	}
}

// hash returns a hash of a content's id, which takes a quarter of its memory. Nobody can choose ids with equal hashes, and a
// pack with a wrong body is not used, because it does not read back.
func (d *draft) hash(id content.ID) uint64 { return maphash.Bytes(d.seed, id[:]) }

// close releases memory. It may be called twice.
func (d *draft) close() {
	d.known = nil
	d.codec.Close()
	d.packed.Close()
}

// limit returns the limits of the current chapter.
func (d *draft) limit() limits {
	switch {
	case d.h.Dense:
		return denseLimits
	case len(d.rows) == 0:
		return firstLimits
	case d.codec.Quick:
		return quickLimits
	}
	return chapterLimits
}

// full reports whether the current chapter is large enough.
func (d *draft) full(limit limits) bool {
	return d.records >= limit.records || len(d.bodies) >= limit.bodies || d.text >= limit.text || limit.packed > 0 && d.packed.Size >= limit.packed
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
func (d *draft) begin(x *columns.Commit) {
	d.row.Commits++
	d.next++
	d.lastSegment, d.lastEnd = x.Segment, x.End
}

// end ends a commit, and the chapter if it is large enough.
func (d *draft) end(x *columns.Commit) error {
	d.list = append(d.list, x)
	if limit := d.limit(); d.full(limit) || d.row.Pieces() >= limit.commits {
		return d.flush()
	}
	return nil
}

// nextPiece ends the chapter inside a commit and returns the commit's piece in the next
// one.
func (d *draft) nextPiece(x *columns.Commit, at, first int, last structure.SpanRef) (*columns.Commit, error) {
	x.Open = true
	d.list = append(d.list, x)
	d.row.Until = x.End
	if err := d.flush(); err != nil {
		return nil, err
	}
	begin := x.PayloadAt() - x.Start + int64(first)
	d.row.Rest = &layout.Rest{FrameStart: x.Start, RecordsAt: begin, Run: lookup.RunByte(last.Run), Seq: last.Seq}
	return x.Continued(at, last), nil
}

// flush writes the current chapter.
func (d *draft) flush() error {
	if len(d.list) == 0 {
		return nil
	}
	r := &d.row
	r.Offset = d.at
	parts, err := columns.Encode(r, d.list, d.bodies, d.ids)
	if err != nil {
		return err
	}
	d.lookup.Chapter(len(columns.Objects(d.list)))
	d.list = nil
	if d.h.Dense { // what takes memory goes before the compression, which needs much
		d.bodies = nil
		d.packed.Close()
	}
	d.codec.Stop = d.stop
	var dict []byte
	if len(d.rows) == 0 && !d.h.Dense {
		dict = slices.Concat(parts[layout.PartColumns], parts[layout.PartContent])
	}
	var packed [3][]byte
	for i, raw := range parts {
		b, err := d.codec.Squeeze(raw)
		if err != nil {
			return err
		}
		parts[i], packed[i] = nil, layout.WithSum(b)
		r.Parts[i].Size = int64(len(packed[i]))
	}
	head := r.EncodeHead(d.h)
	r.Head = int64(len(head))
	r.LayOut()
	for _, b := range append([][]byte{head}, packed[:]...) {
		if err := d.write(b); err != nil {
			return err
		}
	}
	if dict != nil {
		d.codec.UseDictionary(dict)
	}
	d.rows = append(d.rows, *r)
	d.row = layout.ChapterRow{Commit: d.next, Segment: d.lastSegment, End: d.lastEnd, ID: r.ID + uint32(r.IDs), Body: r.Body + r.Bodies}
	d.ids.Next()
	d.records, d.text, d.bodies = 0, 0, d.bodies[:0]
	d.packed.Reset()
	return nil
}

// write appends bytes to the file.
func (d *draft) write(b []byte) error {
	if _, err := d.file.WriteAt(b, d.at); err != nil {
		return err
	}
	d.parity.Add(b, d.at)
	d.at += int64(len(b))
	return nil
}
