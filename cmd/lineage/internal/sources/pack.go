package sources

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
)

// packLarge packs the full segments of the journal, which a command that ends at once leaves to later processes.
func packLarge(ctx context.Context, s *app.OpenStore) {
	line := s.Progress("packing", amount.Bytes)
	defer line.Done()
	_, err := s.Store.Pack(ctx, lineage.PackOptions{Progress: line.Show})
	if err != nil && ctx.Err() == nil && !errors.Is(err, errors.ErrUnsupported) {
		s.Warn("the store is not packed: %v", err) // everything is in it
	}
}
