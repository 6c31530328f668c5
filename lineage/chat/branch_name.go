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
