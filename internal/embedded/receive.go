package embedded

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var _ backend.Receiver = (*Engine)(nil)

// Receive implements backend.Receiver. Collections wait until it returns.
func (e *Engine) Receive(ctx context.Context, commits iter.Seq2[*structure.Commit, error]) error {
	if err := e.collecting.One.Acquire(ctx); err != nil {
		return err
	}
	defer e.collecting.One.Release()
	var encoder structure.Encoder
	for c, err := range commits {
		if err != nil {
			return err
		}
		if e.collecting.Barrier.Load() != nil || e.journal.Collected() {
			return backend.ErrCollected
		}
		payload, _, err := encoder.Encode(c)
		if err != nil {
			return fmt.Errorf("commit %d: %w: %w", c.Number, backend.ErrInvalid, err)
		}
		if err := e.Follow(ctx, Sequenced{Number: c.Number, ID: c.ID, Payload: bytes.Clone(payload), Unknown: true}); err != nil {
			return err
		}
	}
	return nil
}
