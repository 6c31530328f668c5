package bundle

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// MissingError is returned for a bundle that left out what the store does not have:
// it was written for another one. It matches backend.ErrNotFound.
type MissingError struct {
	First string // names the first thing that is missing
	Count int    // how many are
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the bundle was made for a store that has %s: %d such things are not here: %v", e.First, e.Count, backend.ErrNotFound)
}

func (e *MissingError) Unwrap() error { return backend.ErrNotFound }

// ConflictError is returned by an import that was asked to fail when a context went
// on both here and in the bundle. It matches backend.ErrConflict.
type ConflictError struct {
	Context      structure.ContextID
	Ours, Theirs structure.SpanRef // where it stands here, and in the bundle
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("context %v stands at %v here and at %v in the bundle: %v", e.Context, e.Ours, e.Theirs, backend.ErrConflict)
}

func (e *ConflictError) Unwrap() error { return backend.ErrConflict }

// ErrNoInventory is returned for a file that does not begin as an inventory does: it is
// another one, or nothing of it is left. It matches backend.ErrCorrupt.
var ErrNoInventory = fmt.Errorf("it does not begin as an inventory does: %w", backend.ErrCorrupt)

func corrupt(offset int64, format string, args ...any) error {
	return &backend.CorruptError{File: "bundle", Offset: offset, What: fmt.Sprintf(format, args...)}
}
