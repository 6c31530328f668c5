package backend

import (
	"errors"
	"fmt"
)

// Cursor is the last commit that a follower of a store has seen. The number alone does not
// identify it: after power loss, or in a backup that was restored, another commit may have it.
// Commits that differ never have both the number and the id in common.
type Cursor struct {
	Number uint64
	// ID is not 0 for a commit. A cursor without one means any commit with the number: it is
	// not compared with the history.
	ID uint64
}

// String returns number and id.
func (c Cursor) String() string { return fmt.Sprintf("%d (%016x)", c.Number, c.ID) }

// ErrDiverged is returned to a follower whose last commit is not in the store: the store
// lost it, or is a copy that was continued elsewhere.
var ErrDiverged = errors.New("the store has another history")

// DivergedError says from which commit on a follower knows another history. It matches
// ErrDiverged.
type DivergedError struct {
	After Cursor
	// Common is the last commit that both are known to have; zero if none is known.
	Common Cursor
}

func (e *DivergedError) Error() string {
	if e.Common.Number == 0 {
		return fmt.Sprintf("commit %v: %v", e.After, ErrDiverged)
	}
	return fmt.Sprintf("commit %v: %v behind commit %d", e.After, ErrDiverged, e.Common.Number)
}

func (e *DivergedError) Unwrap() error { return ErrDiverged }
