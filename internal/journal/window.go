package journal

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/vfs"
)

// tailWindow is the end of the last segment as memory. Commits that need not be
// durable at once are written through it: that costs a fraction of a system call,
// and they survive the end of the process all the same. The room for it is reserved
// before, so a segment that is written to ends with zeros; they are cut off when it
// is sealed, closed or opened again.
type tailWindow struct {
	window vfs.Window
	end    int64 // of the window
	next   int64 // size of the next
	grown  bool  // the file may be larger than what is in it
	none   bool  // this segment cannot have one
	// readied is where the segment ended when room was made last, and synced where it
	// did so after a sync.
	readied, synced Position
}

const (
	// Reserving room costs about as much for little as for much, so windows begin with
	// what a burst of some hundred messages takes.
	leastWindow = 256 << 10
	mostWindow  = 1 << 20
	// newRoom is made ready in a segment about which nothing is known yet.
	newRoom = 64 << 10
)

// put writes a frame at the end of the segment, through memory if it may.
func (j *Journal) put(s *segment, frame []byte, at int64, mapped bool) error {
	if mapped && j.mapped(s, at, int64(len(frame))) {
		return j.tail.mapped.window.WriteAt(frame, at)
	}
	_, err := s.file.WriteAt(frame, at)
	return err
}

// mapped reports whether the window has room for so many bytes at the end of the
// segment, after seeing to that if it can be.
func (j *Journal) mapped(s *segment, at, size int64) bool {
	w := &j.tail.mapped
	if w.window != nil && at+size <= w.end {
		return true
	}
	if w.none || size > mostWindow/4 {
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
	w.next = min(max(w.next, leastWindow, 4*size), mostWindow)
	room := min(w.next, max(j.opt.SegmentSize-at, size)) // a segment gets no larger
	w.grown = true
	window, err := m.Map(at, room)
	if err != nil { // without room for a window there may be some for a frame
		w.none = true
		return false
	}
	w.window, w.end = window, at+room
	w.next *= 2
	return true
}

// makeRoom has as much room made ready for writing as was written through memory since
// it was done last, so that a burst of commits like the last one need not wait for it.
// A sync takes away what room there was, so after one it is as much as since the last
// sync. It is called now and then, mostly in a pause. Who comes meanwhile waits for what
// they would have done themselves; for who is writing already, it is left out.
func (j *Journal) makeRoom(synced bool) {
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
	used := int64(newRoom)
	if at.Segment == since.Segment {
		used = at.Offset - since.Offset
	}
	used = min(used, mostWindow/4, j.opt.SegmentSize-at.Offset)
	if used > 0 && j.mapped(s, at.Offset, used) {
		w.window.Expect(at.Offset, used)
	}
}

func (w *tailWindow) close() error {
	if w.window == nil {
		return nil
	}
	err := w.window.Close()
	w.window = nil
	if err != nil {
		return fmt.Errorf("close a window: %w", err)
	}
	return nil
}

// trim cuts off the room that was reserved behind the end of the segment, and
// reports whether there may have been any.
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
