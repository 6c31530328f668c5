package chat

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/structure"
)

// NextBranchName returns an automatic name for a branch that is made from another one: see
// structure.VersionName. It is none of those that the caller knows to be taken.
func NextBranchName(ctx context.Context, s Store, chatID, current string, known []string) (string, error) {
	return structure.VersionName(current, func(prefix string, limit int) ([]string, error) {
		if limit == 1 && slices.Contains(known, prefix) {
			return []string{prefix}, nil
		}
		return s.BranchNames(ctx, chatID, prefix, limit)
	})
}

// NewID returns an id for a new branch or checkpoint. Those of one process sort by their creation,
// so that databases list what was created within one millisecond in that order.
func NewID() string { return structure.NewID[structure.ContextID]().String() }
