package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	firstRead = 4 << 10   // what is read for a single frame at first
	mostRead  = 256 << 10 // what is read ahead when frames are read in order
)

// segmentAt returns a segment with its file open, and where its frames end.
func (j *Journal) segmentAt(number uint32) (*segment, vfs.File, int64, error) {
	j.segmentsMu.RLock()
	closed := j.filesGone
	s := j.find(number)
	var file vfs.File
	var end int64
	if s != nil {
		file, end = s.file, s.end
	}
	j.segmentsMu.RUnlock()
	if closed {
		return nil, nil, 0, fmt.Errorf("journal: %w", backend.ErrClosed)
	}
	if s == nil {
		return nil, nil, 0, fmt.Errorf("journal segment %d: %w", number, backend.ErrNotFound)
	}
	if file != nil {
		return s, file, end, nil
	}
	j.segmentsMu.Lock()
	defer j.segmentsMu.Unlock()
	if j.filesGone {
		return nil, nil, 0, fmt.Errorf("journal: %w", backend.ErrClosed)
	}
	if err := s.open(j.opt.FS); err != nil {
		return nil, nil, 0, err
	}
	return s, s.file, s.end, nil
}

func (j *Journal) find(number uint32) *segment {
	i, ok := slices.BinarySearchFunc(j.segments, number, func(s *segment, n uint32) int {
		return int(int64(s.segment) - int64(n))
	})
	if !ok {
		return nil
	}
	return j.segments[i]
}

func (s *segment) open(fsys vfs.FS) error {
	if s.file != nil {
		return nil
	}
	f, err := fsys.Open(s.name)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	s.file = f
	return nil
}

func (s *segment) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Reader reads frames and parts of segments. It reads ahead when it is asked for
// ascending positions. It is not safe for concurrent use.
type Reader struct {
	j       *Journal
	segment *segment
	buf     []byte // never written again once filled: frames share it
	start   int64  // offset of buf in the segment
	ahead   int64
}

// NewReader returns a reader of the journal.
func (j *Journal) NewReader() *Reader { return &Reader{j: j, ahead: firstRead} }

// fetch returns n bytes at an offset, or fewer at the end of the segment.
func (r *Reader) fetch(number uint32, offset, n int64) ([]byte, error) {
	if r.segment != nil && r.segment.segment == number && offset >= r.start {
		if skip := offset - r.start; skip+n <= int64(len(r.buf)) {
			return r.buf[skip:][:n:n], nil
		} else if skip <= int64(len(r.buf))+mostRead {
			r.ahead = min(r.ahead*2, mostRead)
		} else {
			r.ahead = firstRead
		}
	}
	s, file, end, err := r.j.segmentAt(number)
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

// Frame returns the frame at a position.
func (r *Reader) Frame(p Position) (Frame, error) {
	head, err := r.fetch(p.Segment, p.Offset, frameHeader)
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
	b, err := r.fetch(p.Segment, p.Offset, size)
	if err != nil {
		return Frame{}, err
	}
	if int64(len(b)) < size {
		return Frame{}, r.segment.corrupt(p.Offset, "frame is cut short")
	}
	f, ok := decodeFrame(b, r.segment.crc)
	if !ok {
		return Frame{}, r.segment.corrupt(p.Offset, "frame checksum does not match")
	}
	f.Position, f.End = p, p.Offset+size
	f.PayloadOffset += p.Offset
	return f, nil
}

// Bytes returns n bytes from a position on, or fewer where the segment ends. They are as stored, unverified, and must not be changed.
func (r *Reader) Bytes(p Position, n int64) ([]byte, error) { return r.fetch(p.Segment, p.Offset, n) }
