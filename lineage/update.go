package lineage

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/write"
)

// Bounds of a transaction.
const (
	mostTxBytes   = 16 << 20
	mostTxRecords = 10_000
)

// Tx is a transaction: a state of the store, and what is changed in it. Threads and contexts
// that come from it are read and changed inside of it, by the same methods as elsewhere.
// It is for one goroutine, and for the function that it is given to.
type Tx struct{ store *Store }

// Update makes changes that are one commit: all of them or none, seen by others together,
// and for the price of one sync. What the function reads by an id or a name (threads,
// contexts, branches, checkpoints, messages by source id, or that there is none) is still so
// when the changes are committed; otherwise the function is called again, with the state
// that is there then. So it may run several times and must do nothing else that counts.
// It sees its own changes. An error of the function is returned, and nothing is changed.
//
// Inside, listings that concern the whole store are refused, as are deleting threads,
// branches and contexts, and bodies that come from a Reader, with ErrInvalid. A transaction
// of more than 10,000 records or 16 MiB is ErrTooLarge. Threads and contexts of the
// transaction are those of the store once Update has returned nil, and ErrClosed if it has
// not. Those of the store do not take part in the transaction.
func (s *Store) Update(ctx context.Context, change func(tx *Tx) error) error {
	u := &update{store: s, change: change}
	b := s.writer.Batch()
	defer s.writer.Release(b)
	_, err := s.writer.DoOnce(ctx, b, u)
	if err == nil {
		u.tx.store.engine, u.tx.store.view, u.tx.store.writer = s.engine, s.view, s.writer
	}
	return takenSourceID(err, nil)
}

// update is a transaction as a change.
type update struct {
	store  *Store
	change func(*Tx) error
	tx     *Tx // of the last attempt
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
	u.tx = &Tx{store: onEngine(stage, s.writer.On(stage))}
	if err := u.change(u.tx); err != nil {
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

// Thread returns the thread with an id.
func (tx *Tx) Thread(ctx context.Context, id ThreadID) (*Thread, error) {
	return tx.store.Thread(ctx, id)
}

// FindThread returns the thread that was made with a source id.
func (tx *Tx) FindThread(ctx context.Context, sourceID string) (*Thread, error) {
	return tx.store.FindThread(ctx, sourceID)
}

// Find yields the messages that were added with a source id, to whichever threads.
func (tx *Tx) Find(ctx context.Context, sourceID string) iter.Seq2[Found, error] {
	return tx.store.Find(ctx, sourceID)
}

// CreateThread makes a thread with an empty, active main branch.
func (tx *Tx) CreateThread(ctx context.Context, o ThreadOptions) (*Thread, error) {
	return tx.store.CreateThread(ctx, o)
}

// Context returns the context with an id.
func (tx *Tx) Context(ctx context.Context, id ContextID) (*Context, error) {
	return tx.store.Context(ctx, id)
}

// NewContext makes an empty context outside of any thread.
func (tx *Tx) NewContext(ctx context.Context, o ContextOptions) (*Context, error) {
	return tx.store.NewContext(ctx, o)
}
