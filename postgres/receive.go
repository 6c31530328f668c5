package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var _ backend.Receiver = (*Engine)(nil)

// receivedRow is the size at which a row of received commits is full.
const receivedRow = 1 << 20

// Receive implements backend.Receiver. The commits of a row have the same id.
func (e *Engine) Receive(ctx context.Context, commits iter.Seq2[*structure.Commit, error]) error {
	var encoder structure.Encoder
	var r row
	for c, err := range commits {
		if err != nil {
			return errors.Join(err, e.receive(ctx, &r))
		}
		payload, _, err := encoder.Encode(c)
		if err != nil {
			return fmt.Errorf("commit %d: %w: %w", c.Number, backend.ErrInvalid, err)
		}
		if r.count > 0 && (c.ID != r.id || r.count == mostGathered || len(r.data) >= receivedRow || len(r.data)+len(payload) > maxRow) {
			if err := e.receive(ctx, &r); err != nil {
				return err
			}
		}
		if r.count == 0 {
			r = row{first: c.Number, id: c.ID}
		}
		if r.first+r.count != c.Number || c.ID == 0 {
			return fmt.Errorf("commit %d after commit %d: %w", c.Number, r.first+r.count-1, backend.ErrInvalid)
		}
		r.data = appendCommit(r.data, embedded.Sequenced{Payload: payload, Unknown: true})
		r.count++
	}
	return e.receive(ctx, &r)
}

// receive writes a row, if it has commits, and empties it. The replica gets the row before the log, so
// that nothing is written that it refuses.
func (e *Engine) receive(ctx context.Context, r *row) error {
	if r.count == 0 {
		return nil
	}
	next := *r
	*r = row{}
	err := next.seal()
	if err != nil {
		return err
	}
	commits, err := next.commits()
	if err != nil {
		return err
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	if e.replica == nil {
		if err := e.renew(ctx); err != nil {
			return err
		}
	}
	ctx = context.WithoutCancel(ctx)
	t, err := e.lock(ctx)
	if err != nil {
		return err
	}
	defer t.rollback()
	if e.head.epoch > 0 {
		return backend.ErrCollected
	}
	if e.head.next() != next.first {
		return fmt.Errorf("commit %d: the store is at %d: %w", next.first, e.head.Number, backend.ErrConflict)
	}
	e.reads.Lock()
	defer e.reads.Unlock()
	for _, c := range commits {
		if err = e.replica.Follow(ctx, c); err != nil {
			break
		}
	}
	if err == nil {
		err = e.writeTurn(ctx, t, &next, backend.Full) // a lost row and another with fewer commits have the same id
	}
	if errors.Is(err, errBehind) {
		err = fmt.Errorf("commit %d: %w: %w", next.first, err, backend.ErrConflict)
	}
	if err != nil {
		return errors.Join(err, e.dropLocked(true))
	}
	return e.taken(&next, true, nil)
}
