package backend

import (
	"errors"
	"fmt"
)

// Cursor identifies the last commit that a follower of a store has seen. The number alone is not enough: after a
// power loss, or in a restored backup, another commit may have the same number. Different commits never have both the
// same number and the same id.
type Cursor struct {
	Number uint64
	// ID is never 0 for a commit. A cursor with ID 0 stands for any commit with the number. It is not compared with
	// the history.
	ID uint64
}

// String returns number and id.
func (c Cursor) String() string { return fmt.Sprintf("%d (%016x)", c.Number, c.ID) }

// ErrDiverged is returned to a follower whose last commit is not in the store: the store lost it, or is a copy that
// was continued differently.
var ErrDiverged = errors.New("the store has another history")

// DivergedError describes where a follower's history differs. It matches ErrDiverged.
type DivergedError struct {
	After Cursor
	// Common is the last commit that is certainly in both histories, zero if none is known.
	Common Cursor
}

func (e *DivergedError) Error() string {
	if e.Common.Number == 0 {
		return fmt.Sprintf("commit %v: %v", e.After, ErrDiverged)
	}
	return fmt.Sprintf("commit %v: %v after commit %d", e.After, ErrDiverged, e.Common.Number)
}

func (e *DivergedError) Unwrap() error { return ErrDiverged }
