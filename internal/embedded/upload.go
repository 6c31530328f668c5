package embedded

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Upload implements backend.Engine.
func (e *Engine) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	return backend.UploadInCommit(ctx, e, chunks)
}
