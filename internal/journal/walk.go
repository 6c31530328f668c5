package journal

import (
	"fmt"
	"iter"
	"slices"
)

// Frames yields the frames from a position on, across segments, up to where the
// journal ended when it was called. Marks are among them. The zero position is
// the start. An error, which may be that commits are missing, is the last that
// it yields.
func (j *Journal) Frames(from Position) iter.Seq2[Frame, error] {
	end := j.End()
	return func(yield func(Frame, error) bool) {
		w := walk{r: j.NewReader(), yield: yield}
		w.r.ahead = mostRead
		segments := j.segmentsFrom(from.Segment)
		for i, s := range segments {
			p := Position{Segment: s.segment, Offset: headerSize}
			if s.segment == from.Segment {
				p.Offset = max(from.Offset, headerSize)
			}
			if s.segment >= end.Segment {
				w.segment(s, p, end.Offset)
				return
			}
			_, _, stop, err := j.segmentAt(s.segment)
			if err != nil {
				yield(Frame{}, err)
				return
			}
			if !w.segment(s, p, stop) || !w.reaches(s, stop, segments[i+1]) {
				return
			}
		}
	}
}

// walk reads frames in order and sees that none is missing.
type walk struct {
	r      *Reader
	yield  func(Frame, error) bool
	number uint64 // of the last commit
	known  bool   // number is set
}

// segment yields the frames of a segment and reports whether to go on.
func (w *walk) segment(s *segment, from Position, stop int64) bool {
	if from.Offset == headerSize {
		w.number, w.known = s.first-1, true
	}
	for p := from; p.Offset < stop; {
		f, err := w.r.Frame(p)
		if err == nil && w.known {
			err = s.follows(f, w.number)
		}
		if err != nil {
			w.yield(Frame{}, err)
			return false
		}
		if !w.yield(f, nil) {
			return false
		}
		w.number, w.known, p.Offset = f.Number, true, f.End
	}
	return true
}

// reaches reports whether a segment that ends at stop has all commits up to the
// next, and yields an error if not.
func (w *walk) reaches(s *segment, stop int64, next *segment) bool {
	if !w.known || w.number == next.first-1 {
		return true
	}
	w.yield(Frame{}, s.corrupt(stop, fmt.Sprintf("ends with commit %d, but %s begins with commit %d", w.number, next.name, next.first)))
	return false
}

func (j *Journal) segmentsFrom(number uint32) []*segment {
	j.segmentsMu.RLock()
	defer j.segmentsMu.RUnlock()
	i, _ := slices.BinarySearchFunc(j.segments, number, func(s *segment, n uint32) int {
		return int(int64(s.segment) - int64(n))
	})
	return slices.Clone(j.segments[i:])
}

// Find returns the position of the first frame of the segment that holds the
// commit with the given number, from which it is reached by reading on.
func (j *Journal) Find(number uint64) Position {
	j.segmentsMu.RLock()
	defer j.segmentsMu.RUnlock()
	p := Position{Segment: j.segments[0].segment, Offset: headerSize}
	for _, s := range j.segments {
		if s.first <= number {
			p.Segment = s.segment
		}
	}
	return p
}

// SegmentName returns the path of a segment, for messages.
func (j *Journal) SegmentName(number uint32) string {
	j.segmentsMu.RLock()
	defer j.segmentsMu.RUnlock()
	if s := j.find(number); s != nil {
		return s.name
	}
	return segmentName(number)
}

// Name returns the path of the segment that was read last.
func (r *Reader) Name() string {
	if r.segment == nil {
		return r.j.dir
	}
	return r.segment.name
}
