package bundle

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// MissingError is returned for a bundle that omits content or history that the store does not have, because the
// bundle was written for another store. It matches backend.ErrNotFound.
type MissingError struct {
	First string // the first missing thing
	Count int
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the bundle was made for a store that has %s: %d such things are missing here: %v", e.First, e.Count, backend.ErrNotFound)
}

func (e *MissingError) Unwrap() error { return backend.ErrNotFound }

// ConflictError is returned with the option Fail if a context has advanced both in the store and in the bundle. It
// matches backend.ErrConflict.
type ConflictError struct {
	Context      structure.ContextID
	Ours, Theirs structure.SpanRef // tips in the store and in the bundle
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("context %v points to span %v here and to %v in the bundle: %v", e.Context, e.Ours, e.Theirs, backend.ErrConflict)
}

func (e *ConflictError) Unwrap() error { return backend.ErrConflict }

// ErrNoInventory is returned for a file that does not start like an inventory. It matches backend.ErrCorrupt.
var ErrNoInventory = fmt.Errorf("not an inventory: %w", backend.ErrCorrupt)

func corrupt(offset int64, format string, args ...any) error {
	return &backend.CorruptError{File: "bundle", Offset: offset, What: fmt.Sprintf(format, args...)}
}
