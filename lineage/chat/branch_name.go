package chat

import (
	"context"
	"slices"

	"github.com/lineage-store/lineage/structure"
)

// NextBranchName returns an automatic name for a branch that is made from another one: see
// structure.VersionName. It is none of those that the caller knows to be taken.
func NextBranchName(ctx context.Context, s Store, chatID, current string, known []string) (string, error) {
	taken := func(name string) (bool, error) {
		if slices.Contains(known, name) {
			return true, nil
		}
		names, err := s.BranchNames(ctx, chatID, name, 1)
		return slices.Contains(names, name), err
	}
	stem := structure.VersionStem(current)
	versions, err := s.BranchNames(ctx, chatID, stem+"-v", structure.MostVersionsCounted)
	if err != nil {
		return "", err
	}
	count := len(versions)
	if is, err := taken(stem); err != nil {
		return "", err
	} else if is {
		count++
	}
	return structure.VersionName(stem, count, taken)
}
