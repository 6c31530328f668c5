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
	// Unknown is set where it is not known which request the commit is, if it is one.
	Unknown bool
}

// sequence gets the id of the next commit from the log. The write lock is held.
func (e *Engine) sequence(t *turn, number uint64) error {
	if e.opt.Sequence == nil {
		if e.journal.ID() != e.own { // commits of another store were received
			e.journal.SetID(e.own)
		}
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

// Follow adds a commit from the log that the store replicates, or of the store that it is becoming a
// copy of. It must be the next one. The log has judged it, so only a commit that cannot follow is
// refused.
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
	c.Number = s.Number
	defer e.judge.Release()
	if err := e.decide(ctx, c, true); err != nil {
		return fmt.Errorf("commit %d: %w", s.Number, err)
	}
	e.journal.SetID(s.ID)
	once := e.onceWrite(s.Once)
	if s.Unknown {
		once = &journal.OnceWrite{Unknown: true}
	}
	frame, err := e.journal.Append(s.Payload, once, true)
	if err != nil {
		return err
	}
	e.committing = true // a commit that is written and not in the index leaves the store unusable
	e.builder.Locate(frame, offsets, e.packs.Load())
	e.request(&e.builder, frame)
	e.publish(c, frame)
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
