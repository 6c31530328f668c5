package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/write"
)

// Limits of a transaction.
const (
	maxTxBytes   = 16 << 20
	maxTxRecords = 10_000
)

// Tx is the store inside a transaction: see Store.Update.
type Tx struct{ *Store }

// Update commits several changes as one transaction, with a single sync. The function makes its changes through tx,
// which is the store inside the transaction and must not be used concurrently. Only threads and contexts obtained
// from tx take part. The function sees its own changes. If it returns an error, nothing is changed.
//
// The function gets the context of the transaction and must pass it to every call. A call with it on a store, thread
// or context from outside of the transaction is ErrInvalid. A call with another context cannot be recognised: it is
// not part of the transaction and takes effect at once.
//
// If something that the function has read by id or name changes before the commit, the function is called again with
// the new state. This includes that something did not exist. So the function must have no other side effects.
//
// The following are ErrInvalid inside a transaction: listings of the whole store, watching, nested transactions,
// bodies from a Reader, and erasing. More than 10,000 records or 16 MiB are ErrTooLarge. After Update has returned
// nil, tx and its threads and contexts are those of the store. After an error, they are ErrClosed.
func (s *Store) Update(ctx context.Context, change func(ctx context.Context, tx *Tx) error) error {
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

// update is the change of a transaction.
type update struct {
	store  *Store
	change func(context.Context, *Tx) error
	tx     *Store // of the last attempt
}

// Fill implements write.Change.
func (u *update) Fill(ctx context.Context, b *write.Batch, t write.Try) error {
	s := u.store
	if t.Taken("source id") && t.Number > maxTakenTries {
		return t.Err
	}
	from, err := s.engine.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	engine := write.Inner(s.engine)
	stage := write.NewStage(engine, from, b, t.Fresh)
	defer stage.End()
	u.tx = onEngine(stage, s.writer.On(stage))
	inside, end := write.WithTransaction(ctx, engine)
	defer end()
	if err := u.change(inside, &Tx{u.tx}); err != nil {
		return err
	}
	if records, bytes := b.Size(); !stage.IsLarge() && (records > maxTxRecords || bytes > maxTxBytes) {
		return fmt.Errorf("transaction of %d records and %d bytes: %w", records, bytes, ErrTooLarge)
	}
	return nil
}

// maxTakenTries limits retries when a source id is taken, because the other commit may just have come first.
const maxTakenTries = 2
