package pack

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// Writer writes a pack. It keeps the current chapter and the dictionary in memory.
type Writer struct {
	// Unlisted packs have no lookup tables.
	Unlisted bool
	// Quick packs take less time to write and are a little larger. Dense packs are not quick.
	Quick bool
	// Yield is called before each frame that is added or proven.
	Yield func()
	// Stop, if not nil, is called every few milliseconds during compression, which may
	// take seconds. Its error ends the work; then nothing can be added.
	Stop func() error

	draft
	filter  Edit
	encoder structure.Encoder
	// identities are the stated commit ids.
	identities []layout.Identity
	sums       []uint32 // of the payloads, for Prove
}

// NewWriter starts a pack with the commit h.FirstCommit. LastCommit is set by Finish.
func NewWriter(file io.WriterAt, h layout.Header, filter Edit) *Writer {
	return &Writer{draft: newDraft(file, h), filter: filter, Yield: func() {}}
}

// Close releases memory. It may be called twice.
func (w *Writer) Close() { w.close() }

// Add adds the next commit. It does not retain memory of the frame.
func (w *Writer) Add(f Frame) error {
	if f.Number != w.next {
		return fmt.Errorf("pack: commit %d instead of %d", f.Number, w.next)
	}
	w.Yield()
	w.stop, w.codec.Quick = w.Stop, w.Quick
	if f.ID != 0 {
		w.identities = append(w.identities, layout.Identity{Commit: f.Number, ID: f.ID})
	}
	x, payload, err := w.commit(f)
	if err != nil {
		return fmt.Errorf("pack commit %d: %w", f.Number, err)
	}
	w.sums = append(w.sums, layout.Sum(payload))
	return w.end(x)
}

// commit converts a frame. It returns the commit or its last piece, and the resulting
// payload. A payload that this program could not have written is stored verbatim.
func (w *Writer) commit(f Frame) (*columns.Commit, []byte, error) {
	x, err := columns.NewCommit(f.Number, f.Segment, f.Start, f.PayloadOffset, f.End)
	if err != nil {
		return nil, nil, err
	}
	c, offsets, err := decode(f)
	if err != nil && (w.filter != nil || f.Offsets != nil) {
		return nil, nil, err
	}
	changed := false
	if w.filter != nil {
		if c, offsets, changed, err = w.filter.apply(c, offsets); err != nil {
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
			return nil, nil, errors.Join(err, layout.ErrForm)
		}
		x.Verbatim, x.Payload = true, int64(len(f.Payload))
		w.begin(x)
		w.addBody(x, f.Payload)
		w.lookup.Add(f.Number, 0, recordsOf(f.Payload), true)
		return x, f.Payload, nil
	}
	x.Millis, x.Payload = c.Time.UnixMilli(), int64(len(payload))
	w.begin(x)
	x, err = w.addRecords(x, c, offsets, now)
	return x, payload, err
}

// decode returns the commit of a frame and the original offsets of its records.
func decode(f Frame) (*structure.Commit, []int, error) {
	d, err := structure.NewDecoder(f.Payload)
	if err != nil {
		return nil, nil, err
	}
	c := &structure.Commit{Number: f.Number, Time: d.Time}
	var offsets []int
	for d.More() {
		at, r, err := d.Next()
		if err != nil {
			return nil, nil, err
		}
		offsets = append(offsets, at)
		c.Records = append(c.Records, r)
	}
	if f.Offsets != nil {
		if len(f.Offsets) != len(offsets) {
			return nil, nil, layout.ErrForm
		}
		offsets = f.Offsets
	}
	return c, offsets, nil
}

// Finish writes the rest and returns the size of the file. It does not sync.
func (w *Writer) Finish() (int64, error) {
	w.stop = w.Stop
	if err := w.flush(); err != nil {
		return 0, err
	}
	w.h.LastCommit = w.next - 1
	end := layout.AppendTable(layout.AppendIdentities(nil, w.h.FirstCommit, w.identities), w.rows)
	f := layout.Footer{TableAt: w.at, TableSize: uint32(len(end)), TableSum: layout.Sum(end)}
	var finds, directory []byte
	if !w.Unlisted {
		finds, directory = w.lookup.Encode(w.h.FirstCommit)
	}
	if err := w.write(slices.Concat(end, finds, directory)); err != nil {
		return 0, err
	}
	header := w.h.Encode()
	w.parity.Add(header, 0)
	f.DirectorySize, f.HeaderSum = uint32(len(directory)), layout.Sum(header)
	if err := w.write(endOf(f, w.parity, w.at)); err != nil {
		return 0, err
	}
	if _, err := w.file.WriteAt(header, 0); err != nil {
		return 0, err
	}
	return w.at, nil
}

// endOf returns what follows the lookup tables, which end at an offset. The parity is that of all bytes before it.
func endOf(f layout.Footer, parity layout.Parity, at int64) []byte {
	spare := parity.Fold(layout.ParitySize(at))
	f.ParitySize = uint32(len(spare))
	return slices.Concat(layout.WithSum(spare), f.Encode(), f.Encode())
}

// recordsOf returns the records of a payload, or none if it is not a commit.
func recordsOf(payload []byte) []structure.Record {
	c, err := structure.DecodeCommit(payload)
	if err != nil {
		return nil
	}
	return c.Records
}
