package chat

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/structure"
)

// NextBranchName returns an automatic name for a branch that is created from another one: see structure.VersionName.
// The name is not one of those in known.
func NextBranchName(ctx context.Context, s Store, chatID, current string, known []string) (string, error) {
	return structure.VersionName(current, func(prefix string, limit int) ([]string, error) {
		return s.BranchNames(ctx, chatID, prefix, limit)
	}, func(names []string) (int, error) {
		taken, err := s.TakenBranchNames(ctx, chatID, names)
		at := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(taken, name) && !slices.Contains(known, name) })
		if at < 0 {
			at = len(names)
		}
		return at, err
	})
}

// NewID returns an id for a new branch or checkpoint. The ids of one process sort by creation, so that databases list
// in that order what was created within one millisecond.
func NewID() string { return structure.NewID[structure.ContextID]().String() }
