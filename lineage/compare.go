package lineage

import (
	"context"
	"sort"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// CommonPrefix returns how many spans with equal content the histories of two spans have at their
// start, shared or not. It compares digests, so it reads only a few spans. Context.Digest compares
// across stores.
func (s *Store) CommonPrefix(ctx context.Context, a, b SpanRef) (uint64, error) {
	return backend.AtOnce(ctx, s.engine, func(snapshot backend.Snapshot) (uint64, error) { return commonPrefix(ctx, snapshot, a, b) })
}

func commonPrefix(ctx context.Context, snapshot backend.Reader, a, b SpanRef) (uint64, error) {
	runs := backend.Runs(ctx, snapshot)
	common, err := structure.CommonAncestor(a, b, runs)
	if err != nil {
		return 0, err
	}
	shared, err := structure.Position(common, runs)
	if err != nil {
		return 0, err
	}
	lengthA, err := structure.Position(a, runs)
	if err != nil {
		return 0, err
	}
	lengthB, err := structure.Position(b, runs)
	if err != nil {
		return 0, err
	}
	// Histories with equal digests at a position are equal up to there.
	var failed error
	differ := sort.Search(int(min(lengthA, lengthB)-shared), func(i int) bool {
		if failed != nil {
			return true
		}
		var digests [2]structure.Digest
		for k, tip := range []SpanRef{a, b} {
			at, err := structure.At(tip, shared+uint64(i)+1, runs)
			if err == nil {
				digests[k], err = snapshot.Digest(ctx, at)
			}
			if err != nil {
				failed = err
				return true
			}
		}
		return digests[0] != digests[1]
	})
	return shared + uint64(differ), failed
}
