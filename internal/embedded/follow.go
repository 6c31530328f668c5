package embedded

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Sequenced is a commit in the log that a store replicates.
type Sequenced struct {
	Number  uint64
	ID      uint64 // 0 when the log is asked for it
	Payload []byte
	Once    *backend.Once // without Since, which a log does not keep
}

// sequence gets the id of the next commit from the log. The write lock is held.
func (e *Engine) sequence(t *turn, number uint64) error {
	if e.opt.Sequence == nil {
		return nil
	}
	if err := journal.CheckSize(len(t.payload)); err != nil {
		return err
	}
	id, err := e.opt.Sequence(Sequenced{Number: number, Payload: t.payload, Once: t.o.Once})
	if err == nil {
		e.journal.SetID(id)
	}
	return err
}

// Follow adds a commit from the log that the store replicates. It must be the next one. It is
// not judged again.
func (e *Engine) Follow(ctx context.Context, s Sequenced) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if err := e.index.Throttle(); err != nil {
		return err
	}
	c, offsets, err := decodeOffsets(s.Payload, nil)
	if err != nil {
		return fmt.Errorf("commit %d: %w", s.Number, err)
	}
	if err := journal.CheckSize(len(s.Payload)); err != nil {
		return err
	}
	e.write.Lock()
	defer e.write.Unlock()
	if e.committing {
		return errPanicked
	}
	if last := e.index.Number(); s.Number != last+1 {
		return fmt.Errorf("commit %d: the replica is at %d: %w", s.Number, last, backend.ErrConflict)
	}
	e.growFilter()
	e.journal.SetID(s.ID)
	frame, err := e.journal.Append(s.Payload, e.onceWrite(s.Once), true)
	if err != nil {
		return err
	}
	e.committing = true // a commit that is in the journal but not in the index makes the store unusable
	if err := e.replayRecords(c, frame, offsets); err != nil {
		return fmt.Errorf("commit %d: %w", s.Number, err)
	}
	e.committing = false
	if frame.Position.Offset == journal.FirstOffset {
		e.packLater()
	}
	return ctx.Err()
}

// decodeOffsets decodes a commit, and appends the offsets of its records to offsets.
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
