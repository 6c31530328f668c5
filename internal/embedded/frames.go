package embedded

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// commitFrame is a commit in the journal, with the offsets of its records.
type commitFrame struct {
	*structure.Commit
	frame   journal.Frame
	offsets []int
	size    int64
}

// collected returns the commit as collections read it.
func (c commitFrame) collected() collect.Commit {
	return collect.Commit{Commit: c.Commit, Segment: c.frame.Position.Segment, Size: c.size}
}

// commitsAt yields the commits from one number up to another, without what a barrier hides. start is at or before the first.
func (s *store) commitsAt(start journal.Position, from, until uint64, hidden *collect.Barrier) iter.Seq2[commitFrame, error] {
	return func(yield func(commitFrame, error) bool) {
		for f, err := range s.journal.Frames(start) {
			if err != nil {
				yield(commitFrame{}, err)
				return
			}
			if f.Mark || f.Number < from {
				continue
			}
			if f.Number > until {
				return
			}
			c, err := s.decodeFrame(f)
			if err == nil {
				hidden.Filter(c.Commit)
			}
			if !yield(c, err) || err != nil || f.Number == until {
				return
			}
		}
	}
}

// decodeFrame returns the commit of a frame as it is stored.
func (s *store) decodeFrame(f journal.Frame) (commitFrame, error) {
	c, offsets, err := decodeOffsets(f.Payload, nil)
	if err != nil {
		return commitFrame{}, s.frameFault(f, err)
	}
	c.Number = f.Number
	return commitFrame{Commit: c, frame: f, offsets: slices.Clone(firstOffsets(f, offsets)), size: f.End - f.Position.Offset}, nil
}

// firstOffsets returns the offsets of a frame's records when it was first written, given the
// current ones. The index refers to the original offsets.
func firstOffsets(f journal.Frame, offsets []int) []int {
	if f.Offsets != nil {
		return f.Offsets
	}
	return offsets
}

// commitPosition returns a position at or before a commit, from which the journal can be read up to the commit.
func (s *store) commitPosition(number uint64) (journal.Position, error) {
	at := s.latest()
	defer at.Close()
	files := s.journal.FileSet()
	p, packed, err := files.Commit(at.packs.last, number)
	files.Release()
	if packed || err != nil {
		return p, err
	}
	entry, ok, err := at.Last(keys.Of(keys.TableCommit), keys.Of(keys.TableCommit, keys.Uint64(number+1)))
	if err != nil || !ok {
		return s.journal.Find(number), err
	}
	v := keys.ReadVarints(entry.Value)
	return keys.ReadPosition(&v), v.Err()
}

// frameFault adds the position of the frame to an error in decoding a commit.
func (s *store) frameFault(f journal.Frame, err error) error {
	if errors.Is(err, backend.ErrNewerFormat) || errors.Is(err, backend.ErrOlderFormat) {
		return fmt.Errorf("commit %d: %w", f.Number, err)
	}
	return &backend.CorruptError{File: s.journal.SegmentName(f.Position.Segment), Offset: f.Position.Offset, What: err.Error()}
}

// DecodeOffsets decodes a commit, and returns the offsets of its records.
func DecodeOffsets(payload []byte) (*structure.Commit, []int, error) {
	return decodeOffsets(payload, nil)
}

// decodeOffsets is DecodeOffsets. It appends to offsets.
func decodeOffsets(payload []byte, offsets []int) (*structure.Commit, []int, error) {
	d, err := structure.NewDecoder(payload)
	if err != nil {
		return nil, offsets, err
	}
	c := &structure.Commit{Time: d.Time}
	for d.More() {
		offset, r, err := d.Next()
		if err != nil {
			return nil, offsets, err
		}
		offsets = append(offsets, offset)
		c.Records = append(c.Records, r)
	}
	return c, offsets, nil
}
