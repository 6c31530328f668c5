package journal

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
)

// ID returns the id of new commits. A random id is chosen each time the journal is opened,
// so that lost commits and later ones with the same numbers have different ids.
func (j *Journal) ID() uint64 { return j.id }

// SetID sets the id of new commits, for a journal whose commit ids come from elsewhere.
func (j *Journal) SetID(id uint64) {
	j.tail.Lock()
	defer j.tail.Unlock()
	if id != j.id {
		j.id, j.tail.stated = id, false
	}
}

// Append writes the payload as the next commit, and returns its frame without the payload.
// once, if not nil, is the commit's request. After an error the journal is unchanged;
// until that is ensured, it accepts no commits. Append makes nothing durable; normal
// requests a sync within the interval.
func (j *Journal) Append(payload []byte, once *OnceWrite, normal bool) (Frame, error) {
	j.tail.Lock()
	defer j.tail.Unlock()
	if err := j.writable(); err != nil {
		return Frame{}, err
	}
	if err := CheckSize(len(payload)); err != nil {
		return Frame{}, err
	}
	s := j.lastSegment()
	if j.tail.torn {
		if err := j.clear(s); err != nil {
			return Frame{}, err
		}
	}
	if end := s.end.Load(); end > headerSize && end+int64(len(payload))+frameOverhead > j.opt.SegmentSize {
		next, err := j.roll(s)
		if err != nil {
			return Frame{}, fmt.Errorf("begin journal segment: %w", err)
		}
		s = next
	}
	const mark = false
	f, err := j.write(s, j.tail.last+1, mark, payload, once, normal)
	if err != nil {
		return Frame{}, err
	}
	j.tail.last, j.tail.stated = f.Number, true
	j.sync.written.Store(f.Number)
	if normal {
		j.syncLater()
	}
	return f, nil
}

// CheckSize returns ErrTooLarge for a payload larger than MaxPayload.
func CheckSize(payload int) error {
	if payload > MaxPayload {
		return fmt.Errorf("commit of %d bytes, at most %d: %w", payload, MaxPayload, backend.ErrTooLarge)
	}
	return nil
}

// write appends a frame to the segment, with mapped through the window if possible.
func (j *Journal) write(s *segment, number uint64, mark bool, payload []byte, once *OnceWrite, mapped bool) (Frame, error) {
	var payloadAt int
	trailer := j.tail.trailer[:0]
	request := once.as(number, s.first)
	if !mark {
		id := j.id
		if j.tail.stated {
			id = 0
		}
		trailer = appendTrailer(trailer, id, request)
	}
	j.tail.buf, payloadAt = appendFrame(j.tail.buf[:0], s.crc, number, min(j.sync.durableNumber(), number), mark, payload, trailer)
	at, size := s.end.Load(), int64(len(j.tail.buf))
	err := j.put(s, j.tail.buf, at, mapped)
	if cap(j.tail.buf) > 1<<20 {
		j.tail.buf = nil // do not retain the memory of a huge commit
	}
	if err != nil {
		err = fmt.Errorf("write to %s: %w", s.name, err)
		j.tail.torn = true
		return Frame{}, errors.Join(err, j.clear(s))
	}
	f := Frame{
		Position:      Position{Segment: s.segment, Offset: at},
		End:           at + size,
		Number:        number,
		ID:            j.id,
		Once:          request,
		Mark:          mark,
		PayloadOffset: at + int64(payloadAt),
	}
	s.end.Store(f.End)
	return f, nil
}

// clear removes the bytes of a failed write after the end of the segment, and syncs:
// otherwise they could reappear after power loss in the place of a later frame. Until it
// succeeds, nothing is appended.
func (j *Journal) clear(s *segment) error {
	if err := j.tail.mapped.close(); err != nil {
		return err
	}
	if err := s.file.Truncate(s.end.Load()); err != nil {
		return fmt.Errorf("clear a failed write from %s: %w", s.name, err)
	}
	if err := j.sync.again(); err != nil {
		return err
	}
	j.tail.torn, j.tail.mapped.grown = false, false
	return nil
}

// Close makes everything durable, writes a mark, and closes the files. It returns an error
// if a commit may not be durable. It may be called twice.
func (j *Journal) Close() error {
	j.tail.Lock()
	defer j.tail.Unlock()
	if j.tail.closed {
		return nil
	}
	j.tail.closed = true
	var err error
	if !j.opt.ReadOnly {
		err = j.finish()
	}
	j.sync.stop()
	j.segmentsMu.Lock()
	defer j.segmentsMu.Unlock()
	j.filesGone = true
	for _, s := range slices.Concat(j.segments, j.doomed) {
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
	}
	return err
}

// finish makes every commit durable and writes a mark after the last one.
func (j *Journal) finish() error {
	s := j.lastSegment()
	if _, err := j.trim(s); err != nil {
		j.opt.Logger.Warn("reserved space is not cut off before the store is opened again", "file", s.name, "err", err)
	}
	if err := j.Sync(j.tail.last); err != nil {
		return err
	}
	if j.tail.torn {
		if err := j.clear(s); err != nil {
			return err
		}
	}
	if j.sync.failure() != nil || j.marked == j.tail.last {
		return nil
	}
	// The mark is only evidence, so it is not synced and may fail.
	const mark, mapped = true, false
	if _, err := j.write(s, j.tail.last, mark, nil, nil, mapped); err != nil {
		j.opt.Logger.Warn("final mark is not written", "file", s.name, "err", err)
	}
	return nil
}
