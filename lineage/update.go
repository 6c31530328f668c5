package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/write"
)

// Bounds of a transaction.
const (
	mostTxBytes   = 16 << 20
	mostTxRecords = 10_000
)

// Tx is the store inside a transaction: see Store.Update.
type Tx struct{ *Store }

// Update is a transaction: changes that are one commit, all of them or none, seen by others
// together, and for the price of one sync. The function changes tx, which is the store inside
// the transaction and is for one goroutine; threads and contexts that come from tx take part,
// others do not. What the function reads by an id or a name (threads, contexts, branches,
// checkpoints, messages by source id, or that there is none) is still so when the changes are
// committed; otherwise the function is called again, with the state that is there then. So it
// may run several times and must do nothing else that counts. It sees its own changes. An
// error of the function is returned, and nothing is changed.
//
// Inside, ErrInvalid refuses listings that concern the whole store, watching, transactions,
// bodies that come from a Reader, erasing, and deleting threads, branches and contexts. A
// transaction of more than 10,000 records or 16 MiB is ErrTooLarge. Once Update has returned
// nil, tx and what comes from it are the store and its threads and contexts; if it has not,
// they are ErrClosed.
func (s *Store) Update(ctx context.Context, change func(tx *Tx) error) error {
	if s.inTransaction() {
		return fmt.Errorf("transaction inside a transaction: %w", ErrInvalid)
	}
	u := &update{store: s, change: change}
	b := s.writer.Batch()
	defer s.writer.Release(b)
	_, err := s.writer.DoOnce(ctx, b, u)
	if err == nil {
		u.tx.engine, u.tx.view, u.tx.writer = s.engine, s.view, s.writer
	}
	return takenSourceID(err, nil)
}

var errReaderInside = fmt.Errorf("body from a reader inside a transaction, which may be tried again: %w", ErrInvalid)

// update is a transaction as a change.
type update struct {
	store  *Store
	change func(*Tx) error
	tx     *Store // of the last attempt
}

func (s *Store) inTransaction() bool {
	_, staged := s.engine.(*write.Stage)
	return staged
}

// Fill implements write.Change.
func (u *update) Fill(ctx context.Context, b *write.Batch, t write.Try) error {
	s := u.store
	if t.Taken("source id") && t.Number > mostRefused {
		return t.Err
	}
	from, err := s.engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	stage := write.NewStage(s.engine, from, b, t.Fresh)
	defer stage.End()
	u.tx = onEngine(stage, s.writer.On(stage))
	if err := u.change(&Tx{u.tx}); err != nil {
		if errors.Is(err, ErrExpired) { // the state went with the process that had the store open
			err = fmt.Errorf("%w: %w", write.ErrPassed, err)
		}
		return err
	}
	if records, bytes := b.Size(); !stage.IsLarge() && (records > mostTxRecords || bytes > mostTxBytes) {
		return fmt.Errorf("transaction of %d records and %d bytes: %w", records, bytes, ErrTooLarge)
	}
	return nil
}

// mostRefused is how often a transaction is tried whose messages have source ids that are
// taken: others may have come first, but not for ever.
const mostRefused = 2
