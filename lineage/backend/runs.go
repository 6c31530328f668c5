package backend

import (
	"context"

	"github.com/lineage-store/lineage/structure"
)

// mostAncestors is the most runs that are asked for at once.
const mostAncestors = 256

// Runs looks up runs for functions over ancestry, each once. It is not safe for concurrent
// use. The more has been asked for, the more ancestors are fetched with a run: the first
// lookup costs one run, and a long ancestry few calls.
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
		limit = min(2*limit, mostAncestors)
		for _, run := range all {
			known[run.ID] = run
		}
		return known[id], nil
	}
}
