package refs

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Resolver finds things in a store by their names.
type Resolver struct {
	store  *lineage.Store
	view   backend.View
	thread *lineage.Thread
	allows func(*structure.Thread) bool // nil for all
	find   finder
	alone  bool     // there is no other thread
	kept   *reaches // nil where all is allowed
}

// reaches caches what the histories of single threads lead to, and parts of runs that were found to be in one of all.
type reaches struct {
	byThread map[lineage.ThreadID]backend.Reach
	found    backend.Reach
}

// finder finds a thread by the id that its creator chose.
type finder = func(ctx context.Context, id string) (*lineage.Thread, error)

func isNotFound(err error) bool { return errors.Is(err, lineage.ErrNotFound) }

// orNone replaces a not-found error by nil.
func orNone[T any](found *T, err error) (*T, error) {
	if isNotFound(err) {
		return nil, nil
	}
	return found, err
}
