package backend

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/structure"
)

// Receiver is implemented by engines whose store can become a copy of another.
type Receiver interface {
	// Receive adds commits of another store as they are, with their numbers, ids and times.
	// They come from its Feed, and the first is the one after the head (ErrConflict). What was
	// added when a commit fails stays. The commits are durable after Sync. A store from which a
	// collection removed something receives nothing: ErrCollected.
	//
	// Which requests of sessions the commits were is not known here. A request that may be one
	// of them is ErrUncertain.
	Receive(ctx context.Context, commits iter.Seq2[*structure.Commit, error]) error
}

// ErrCollected is returned when a store cannot take further commits of the store that it was copied
// from, because a collection removed what these may need. It matches ErrDiverged.
var ErrCollected = fmt.Errorf("garbage was collected in the copy: %w", ErrDiverged)
