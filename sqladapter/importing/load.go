package importing

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// loadAt runs a transaction as of a time, and reports whether it changes anything.
func loadAt(ctx context.Context, store *lineage.Store, at time.Time, load func(tx *lineage.Store) error) (changed bool, err error) {
	err = store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		stage := write.Of(tx.Store).Engine().(*write.Stage)
		stage.AllowLarge()
		stage.Load(at, backend.Normal)
		err := load(tx.Store)
		changed = stage.Changes() > 0
		return err
	})
	return changed && err == nil, err
}
