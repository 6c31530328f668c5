package backend

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// Receiver is implemented by engines whose store can become a copy of another.
type Receiver interface {
	// Receive adds commits of another store unchanged, with their numbers, ids and times. They must come from its
	// Feed, and the first must be the one after the head (ErrConflict). If a commit fails, the ones before it stay.
	// The commits are durable after Sync. A store from which a collection removed something accepts none:
	// ErrCollected.
	//
	// It is not known which of these commits were requests of sessions. A request that may be one of them is
	// ErrUncertain.
	Receive(ctx context.Context, commits iter.Seq2[*structure.Commit, error]) error
}

// ErrCollected is returned when a store cannot accept further commits of the store that it was copied from, because a
// collection has removed something that they may need. It matches ErrDiverged.
var ErrCollected = fmt.Errorf("garbage was collected in the copy: %w", ErrDiverged)
