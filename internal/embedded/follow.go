package embedded

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Sequenced is an encoded commit with its number and id, as a log has it.
type Sequenced struct {
	Number  uint64
	ID      uint64
	Payload []byte
	Once    *backend.Once // without Since, which a log does not keep
	// Unknown is set if it is not known whether the commit is a request, and which.
	Unknown bool
}

// Follow adds the next commit of the store or log that this store is becoming a copy of. The commit was judged there,
// so it is refused only if it does not follow the last commit of this store.
func (e *Engine) Follow(ctx context.Context, s Sequenced) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if err := e.index.Throttle(); err != nil {
		return err
	}
	c, offsets, err := DecodeOffsets(s.Payload)
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
		return fmt.Errorf("commit %d: the copy is at %d: %w", s.Number, last, backend.ErrConflict)
	}
	e.growFilter()
	c.Number = s.Number
	defer e.judge.Release()
	const replay = true
	if err := e.decide(ctx, c, replay); err != nil {
		return fmt.Errorf("commit %d: %w", s.Number, err)
	}
	e.journal.SetID(s.ID)
	once := e.sessions.trailer(s.Once)
	if s.Unknown {
		once = &journal.OnceWrite{Unknown: true}
	}
	const normal = true
	frame, err := e.journal.Append(s.Payload, once, normal)
	if err != nil {
		return err
	}
	e.committing = true // a failure after the commit is written and before it is in the index makes the store unusable
	e.publish(c, frame, offsets)
	e.committing = false
	if frame.Position.Offset == journal.FirstOffset {
		e.schedule.segmentSealed()
	}
	return ctx.Err()
}
