package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

const (
	firstRead = 4 << 10   // first read for a single frame
	maxRead   = 256 << 10 // largest read-ahead for frames in order
)

// Reader reads frames and parts of segments. It reads ahead when positions ascend. It
// is not safe for concurrent use.
type Reader struct {
	j       *Journal
	files   *FileSet // nil for the current journal at each read
	segment *segment
	buf     []byte // never overwritten: frames share it
	start   int64  // offset of buf in the segment
	ahead   int64
}

// NewReader returns a reader of the journal as it is at each read.
func (j *Journal) NewReader() *Reader { return &Reader{j: j, ahead: firstRead} }

// with returns a file set that has the segment, and a function that releases it.
func (r *Reader) with(number uint32) (*FileSet, func()) {
	if r.files != nil && r.files.find(number) != nil {
		return r.files, func() {}
	}
	v := r.j.FileSet()
	return v, v.Release
}

// fetch returns n bytes at an offset, or fewer at the end of the segment.
func (r *Reader) fetch(v *FileSet, number uint32, offset, n int64) ([]byte, error) {
	if r.segment != nil && r.segment.segment == number && offset >= r.start {
		if skip := offset - r.start; skip+n <= int64(len(r.buf)) {
			return r.buf[skip:][:n:n], nil
		} else if skip <= int64(len(r.buf))+maxRead {
			r.ahead = min(r.ahead*2, maxRead)
		} else {
			r.ahead = firstRead
		}
	}
	s, file, end, err := v.at(number)
	if err != nil {
		return nil, err
	}
	if offset < headerSize || offset >= end {
		return nil, s.corrupt(offset, "nothing is stored there")
	}
	want := min(max(n, r.ahead), end-offset)
	r.segment, r.start = s, offset
	r.buf = make([]byte, want)
	if got, err := file.ReadAt(r.buf, offset); int64(got) < want {
		r.buf = nil
		switch {
		case errors.Is(err, io.EOF):
			return nil, s.corrupt(offset+int64(got), "the file ends too early")
		case errors.Is(err, fs.ErrClosed):
			return nil, fmt.Errorf("read %s: %w", s.name, backend.ErrClosed)
		}
		return nil, fmt.Errorf("read %s: %w", s.name, err)
	}
	return r.buf[:min(n, want):min(n, want)], nil
}

// File identifies a file of the journal: when a file is replaced, a position may have
// other bytes.
type File struct{ s *segment }

// Place returns the file that contains a position. If it is a pack, it also returns
// spans of the commit there. The span with is one of them.
func (r *Reader) Place(p Position, with structure.SpanRef) (File, *pack.Spans, error) {
	v, release := r.with(p.Segment)
	defer release()
	s := v.find(p.Segment)
	if s == nil || s.pack == nil {
		return File{s}, nil, nil
	}
	r.segment, r.buf = s, nil
	spans, err := s.pack.Spans(p.Segment, p.Offset, with)
	return File{s}, spans, err
}

// ready returns the bytes at a position that were read ahead, if the reader has a
// file set.
func (r *Reader) ready(p Position) []byte {
	if skip := p.Offset - r.start; r.files != nil && r.segment != nil && r.segment.segment == p.Segment && skip >= 0 && skip < int64(len(r.buf)) {
		return r.buf[skip:]
	}
	return nil
}

// Frame returns the frame at a position.
func (r *Reader) Frame(p Position) (Frame, error) {
	if b := r.ready(p); len(b) >= frameHeader {
		if size := frameSize(b); size > 0 && size <= int64(len(b)) {
			return r.frame(p, b[:size:size])
		}
	}
	v, release := r.with(p.Segment)
	defer release()
	if s := v.find(p.Segment); s != nil && s.pack != nil {
		r.segment, r.buf = s, nil
		f, err := s.pack.Frame(p.Segment, p.Offset)
		return packed(f), err
	}
	head, err := r.fetch(v, p.Segment, p.Offset, frameHeader)
	if err != nil {
		return Frame{}, err
	}
	if len(head) < frameHeader {
		return Frame{}, r.segment.corrupt(p.Offset, "frame is cut short")
	}
	size := frameSize(head)
	if size == 0 {
		return Frame{}, r.segment.corrupt(p.Offset, "not a frame")
	}
	b, err := r.fetch(v, p.Segment, p.Offset, size+frameHeader) // and the size of the next frame
	if err != nil {
		return Frame{}, err
	}
	if int64(len(b)) < size {
		return Frame{}, r.segment.corrupt(p.Offset, "frame is cut short")
	}
	b = b[:size:size]
	return r.frame(p, b)
}

// frame decodes b as a frame.
func (r *Reader) frame(p Position, b []byte) (Frame, error) {
	f, ok := decodeFrame(b, r.segment.crc)
	if !ok {
		return Frame{}, r.segment.corrupt(p.Offset, "frame checksum does not match")
	}
	f.Position, f.End = p, p.Offset+int64(len(b))
	f.PayloadOffset += p.Offset
	return f, nil
}

// packed converts a frame of a pack. Everything before it is durable.
func packed(f pack.Frame) Frame {
	return Frame{
		Position: Position{Segment: f.Segment, Offset: f.Start}, End: f.End, Number: f.Number, ID: f.ID, Durable: f.Number, Packed: true,
		Payload: f.Payload, PayloadOffset: f.PayloadOffset, Offsets: f.Offsets,
	}
}

// NewReader returns a reader of the files.
func (v *FileSet) NewReader() *Reader { return &Reader{j: v.j, files: v, ahead: firstRead} }
