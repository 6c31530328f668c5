package derived

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Between returns what the commits after a cursor changed, up to another one. A cursor of another history is
// [backend.ErrDiverged].
func Between(ctx context.Context, view backend.View, after, upTo backend.Cursor) (*Changes, error) {
	changes := NewChanges()
	for c, err := range view.Feed(ctx, after) {
		if err != nil {
			return nil, err
		}
		if c.Number > upTo.Number {
			break
		}
		for _, r := range c.Records {
			changes.add(r)
		}
	}
	return changes, nil
}
