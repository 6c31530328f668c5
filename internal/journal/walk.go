package journal

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Frames yields the frames from a position on, including marks, across segments, up
// to the end of the journal at the time of the call. The zero position is the start.
// An error, which includes missing commits, ends the sequence.
func (j *Journal) Frames(from Position) iter.Seq2[Frame, error] {
	end := j.End()
	return func(yield func(Frame, error) bool) {
		v := j.FileSet()
		defer v.Release()
		v.frames(from, end, 0, yield)
	}
}

// frames yields frames. With a commit, those of packs begin with it and are decoded.
func (v *FileSet) frames(from, end Position, commit uint64, yield func(Frame, error) bool) {
	segments := v.from(from.Segment)
	if len(segments) == 0 || end.Segment > segments[len(segments)-1].last {
		now := v.j.FileSet() // segments created since
		defer now.Release()
		if len(segments) == 0 {
			segments = now.from(from.Segment)
		} else {
			segments = slices.Concat(segments, now.from(segments[len(segments)-1].last+1))
		}
	}
	w := walk{r: &Reader{j: v.j, files: v, ahead: maxRead}, yield: yield, commit: commit}
	for i, s := range segments {
		if s.pack != nil {
			if !w.packed(s, from) || i+1 < len(segments) && !w.reaches(s, s.end.Load(), segments[i+1]) {
				return
			}
			continue
		}
		p := Position{Segment: s.segment, Offset: headerSize}
		if s.segment == from.Segment {
			p.Offset = max(from.Offset, headerSize)
		}
		if s.segment >= end.Segment {
			w.segment(s, p, end.Offset)
			return
		}
		v.j.segmentsMu.RLock()
		stop := s.end.Load()
		v.j.segmentsMu.RUnlock()
		if !w.segment(s, p, stop) || i+1 == len(segments) || !w.reaches(s, stop, segments[i+1]) {
			return
		}
	}
}

// walk reads frames in order and checks that none is missing.
type walk struct {
	r      *Reader
	yield  func(Frame, error) bool
	number uint64 // of the last commit
	known  bool   // number is set
	commit uint64 // see frames
}

// segment yields the frames of a segment and reports whether to continue.
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

// packed yields the frames of a pack from a position on and reports whether to
// continue.
func (w *walk) packed(s *segment, from Position) bool {
	if w.commit > 0 {
		return w.commits(s, max(w.commit, s.first))
	}
	if from.Segment < s.segment || from.Segment == s.segment && from.Offset <= headerSize {
		w.number, w.known = s.first-1, true
	}
	for f, err := range s.pack.Frames(from.Segment, from.Offset) {
		if err == nil && w.known && f.Number != w.number+1 {
			err = s.corrupt(0, fmt.Sprintf("commit %d follows commit %d", f.Number, w.number))
		}
		if err != nil {
			w.yield(Frame{}, err)
			return false
		}
		if !w.yield(packed(f), nil) {
			return false
		}
		w.number, w.known = f.Number, true
	}
	if !w.known { // the position is after all commits of the pack
		w.number, w.known = s.pack.LastCommit, true
	}
	return true
}

// commits yields the decoded commits of a pack from a number on, and reports whether to continue.
func (w *walk) commits(s *segment, from uint64) bool {
	w.number, w.known = s.pack.LastCommit, true
	if from > s.pack.LastCommit {
		return true
	}
	w.number = from - 1
	for c, err := range s.pack.Commits(from) {
		if err == nil && c.Number != w.number+1 {
			err = s.corrupt(0, fmt.Sprintf("commit %d follows commit %d", c.Number, w.number))
		}
		if err != nil {
			w.yield(Frame{}, err)
			return false
		}
		if !w.yield(Frame{Number: c.Number, ID: c.ID, Durable: c.Number, Packed: true, Commit: c}, nil) {
			return false
		}
		w.number = c.Number
	}
	return true
}

// reaches reports whether a segment that ends at stop has all commits before the
// next, and yields an error if not.
func (w *walk) reaches(s *segment, stop int64, next *segment) bool {
	if !w.known || w.number == next.first-1 {
		return true
	}
	w.yield(Frame{}, s.corrupt(stop, fmt.Sprintf("ends with commit %d, but %s begins with commit %d", w.number, next.name, next.first)))
	return false
}

// from returns the files with segments from a number on.
func (v *FileSet) from(number uint32) []*segment {
	i, _ := slices.BinarySearchFunc(v.segments, number, func(s *segment, n uint32) int { return int(int64(s.last) - int64(n)) })
	return v.segments[i:]
}

// Find returns a position from which the journal can be read up to a commit: the
// start of the file that contains it.
func (j *Journal) Find(number uint64) Position {
	v := j.FileSet()
	defer v.Release()
	p := Position{Segment: v.segments[0].segment, Offset: headerSize}
	for _, s := range v.segments {
		if s.first <= number {
			p.Segment = s.segment
		}
	}
	return p
}

// After returns the position at which to continue after a position, given the last
// commit read. If that is the last of a pack, it is after the pack, so that the pack
// is not read.
func (j *Journal) After(p Position, number uint64) Position {
	v := j.FileSet()
	defer v.Release()
	if s := v.find(p.Segment); s != nil && s.pack != nil && s.pack.LastCommit <= number {
		return Position{Segment: s.last + 1, Offset: headerSize}
	}
	return p
}

// Check reads every frame of segments and every part of packs up to a position. It
// returns the first damage, or an error if commits are missing in between. Parts are
// not decoded.
func (v *FileSet) Check(ctx context.Context, end Position) (err error) {
	// The walk yields an error before it returns false, and so sets err.
	w := walk{r: &Reader{j: v.j, files: v, ahead: maxRead}, yield: func(_ Frame, frameErr error) bool {
		err = frameErr
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err == nil
	}}
	for i, s := range v.segments {
		if s.segment > end.Segment {
			break
		}
		stop := s.end.Load()
		if s.segment == end.Segment {
			stop = end.Offset
		}
		if s.pack != nil {
			if err := s.pack.CheckParts(ctx); err != nil {
				return err
			}
			w.number, w.known = s.pack.LastCommit, true
		} else if !w.segment(s, Position{Segment: s.segment, Offset: headerSize}, stop) {
			return err
		}
		if i+1 < len(v.segments) && v.segments[i+1].segment <= end.Segment && !w.reaches(s, stop, v.segments[i+1]) {
			return err
		}
	}
	return nil
}

// SegmentName returns the path of the file that contains a segment, for messages.
func (j *Journal) SegmentName(number uint32) string {
	v := j.FileSet()
	defer v.Release()
	if s := v.find(number); s != nil {
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

// Frames is [Journal.Frames] over the file set.
func (v *FileSet) Frames(from Position) iter.Seq2[Frame, error] {
	end := v.j.End()
	return func(yield func(Frame, error) bool) { v.frames(from, end, 0, yield) }
}

// Commits yields the frames from a position at or before a commit on. Those of packs begin with the commit and are
// decoded: see Frame.Commit.
func (v *FileSet) Commits(from Position, commit uint64) iter.Seq2[Frame, error] {
	end := v.j.End()
	return func(yield func(Frame, error) bool) { v.frames(from, end, commit, yield) }
}
