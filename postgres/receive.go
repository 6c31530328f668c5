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
	var r logRow
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
			r = logRow{first: c.Number, id: c.ID}
		}
		if r.first+r.count != c.Number || c.ID == 0 {
			return fmt.Errorf("commit %d after commit %d: %w", c.Number, r.first+r.count-1, backend.ErrInvalid)
		}
		r.data = appendCommit(r.data, embedded.Sequenced{Payload: payload, Unknown: true})
		r.count++
	}
	return e.receive(ctx, &r)
}

// receive writes a row, if it has commits, and empties it.
func (e *Engine) receive(ctx context.Context, r *logRow) error {
	if r.count == 0 {
		return nil
	}
	next := *r
	*r = logRow{}
	if err := next.seal(); err != nil {
		return err
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	if e.closed.Load() {
		return errClosed
	}
	err := error(errDiverged)
	for range mostRetries {
		err = e.receiveOnce(context.WithoutCancel(ctx), &next)
		interrupted := errors.Is(err, errBehind) && (isTransient(err) || mayHaveWritten(err)) // before it wrote
		if !interrupted && !errors.Is(err, errDiverged) {
			break
		}
	}
	if errors.Is(err, errBehind) {
		err = fmt.Errorf("commit %d: %w: %w", next.first, err, backend.ErrConflict)
	}
	return err
}

func (e *Engine) receiveOnce(ctx context.Context, r *logRow) (err error) {
	e.warm = nil
	reader, tx, err := e.lock(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		tx.rollback()
		if err != nil {
			e.judging.state.Cache.Forget()
		}
	}()
	before := reader.state
	switch {
	case before.epoch > 0:
		return backend.ErrCollected
	case before.next() != r.first:
		return fmt.Errorf("commit %d: the store is at %d: %w", r.first, before.Number, backend.ErrConflict)
	}
	commits, err := r.commits()
	if err != nil {
		return err
	}
	var all []replayed
	for _, s := range commits {
		c, err := newReplayed(r, s)
		if err != nil {
			return fmt.Errorf("commit %d: %w", s.Number, err)
		}
		all = append(all, c)
	}
	if err := e.judging.replayAll(ctx, all); err != nil {
		return err
	}
	r.counts = e.judging.counts.Values()
	if r.output, err = newOutput(reader, r.last().Number, false); err != nil {
		return err
	}
	// A lost row and another with fewer commits have the same id.
	if err := tx.write(ctx, before.head, r, backend.Full); err != nil {
		return err
	}
	e.advance(reader, r, true)
	return nil
}
