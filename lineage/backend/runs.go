package backend

import (
	"context"

	"github.com/lineage-store/lineage/structure"
)

// maxAncestors is the largest number of runs per call.
const maxAncestors = 256

// Runs looks up runs for functions over ancestry, with a cache. It is not safe for
// concurrent use. Each lookup fetches twice as many ancestors as the last one: the first
// costs one run, and a long ancestry few calls.
func Runs(ctx context.Context, r Reader) structure.RunLookup {
	known := make(map[structure.RunID]structure.RunInfo)
	limit := 1
	return func(id structure.RunID) (structure.RunInfo, error) {
		if run, ok := known[id]; ok {
			return run, nil
		}
		all, err := r.Ancestry(ctx, id, limit)
		if err != nil {
			return structure.RunInfo{}, err
		}
		limit = min(2*limit, maxAncestors)
		for _, run := range all {
			known[run.ID] = run
		}
		return known[id], nil
	}
}
