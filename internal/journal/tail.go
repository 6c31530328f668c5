package journal

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/vfs"
)

const (
	// Reserving space costs about the same for any size, so the first window fits a
	// burst of some hundred messages.
	minWindow = 256 << 10
	maxWindow = 1 << 20
	// newSpace is the space prepared in a new segment.
	newSpace = 64 << 10
)

// put writes a frame at the end of the segment, with mapped through the window if
// possible.
func (j *Journal) put(s *segment, frame []byte, at int64, mapped bool) error {
	if mapped && j.mapped(s, at, int64(len(frame))) {
		return j.tail.mapped.window.WriteAt(frame, at)
	}
	_, err := s.file.WriteAt(frame, at)
	return err
}

// mapped reports whether the window has space for so many bytes at the end of the
// segment. It maps a new window if necessary and possible.
func (j *Journal) mapped(s *segment, at, size int64) bool {
	w := &j.tail.mapped
	if w.window != nil && at+size <= w.end {
		return true
	}
	if w.none || size > maxWindow/4 {
		return false
	}
	m, ok := s.file.(vfs.Mapper)
	if !ok {
		w.none = true
		return false
	}
	if err := w.close(); err != nil {
		j.opt.Logger.Warn("window is not closed", "err", err)
	}
	w.next = min(max(w.next, minWindow, 4*size), maxWindow)
	room := min(w.next, max(j.opt.SegmentSize-at, size)) // the segment size is a limit
	w.grown = true
	window, err := m.Map(at, room)
	if err != nil { // there may be space for a frame without a window
		w.none = true
		return false
	}
	w.window, w.end = window, at+room
	w.next *= 2
	return true
}

// prepareSpace prepares as much space as was written through memory since the last call, so that a
// similar burst of commits need not wait for it. After a sync, which discards prepared space, it
// prepares as much as was written since the sync before. It is called regularly, mostly in pauses. It does
// nothing during a write, and writers wait until it ends.
func (j *Journal) prepareSpace(synced bool) {
	if !j.tail.TryLock() {
		return
	}
	defer j.tail.Unlock()
	w := &j.tail.mapped
	if w.window == nil || j.tail.torn || j.writable() != nil {
		return
	}
	s := j.lastSegment()
	at := Position{s.segment, s.end.Load()}
	since := w.readied
	if synced {
		since, w.synced = w.synced, at
	}
	w.readied = at
	used := int64(newSpace)
	if at.Segment == since.Segment {
		used = at.Offset - since.Offset
	}
	used = min(used, maxWindow/4, j.opt.SegmentSize-at.Offset)
	if used > 0 && j.mapped(s, at.Offset, used) {
		w.window.Expect(at.Offset, used)
	}
}

// trim cuts off reserved space after the end of the segment, and reports whether there
// may have been any.
func (j *Journal) trim(s *segment) (trimmed bool, err error) {
	w := &j.tail.mapped
	err = w.close()
	if !w.grown {
		return false, err
	}
	if err = errors.Join(err, s.file.Truncate(s.end.Load())); err != nil {
		return true, fmt.Errorf("cut %s: %w", s.name, err)
	}
	w.grown = false
	return true, nil
}
