package embedded

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Upload implements backend.Engine. Chunks are a commit of their own: the journal has them
// before the commit that names them, and they become durable with it.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	if len(chunks) == 0 {
		return 0, ctx.Err()
	}
	records := make([]structure.Record, len(chunks))
	for i, c := range chunks {
		records[i] = c
	}
	receipt, err := e.Apply(ctx, &structure.Commit{Records: records}, backend.Options{Durability: backend.Normal})
	if err != nil {
		return 0, err
	}
	return len(chunks) - receipt.KnownChunks, nil
}
