package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// PackOptions configure packing.
//
//	All      bool                    // pack everything up to the latest commit; otherwise only whole files
//	Dense    bool                    // compress as much as possible, which makes reading a message slower
//	Progress func(done, total int64) // if not nil, called with the bytes of the journal that were read
type PackOptions = backend.PackOptions

// Pack compresses full segments: bodies in groups, structure field by field. Every message stays
// individually readable. The store can be used meanwhile. If ctx ends, what was packed so far
// remains. If the engine has no packing, the error matches errors.ErrUnsupported.
func (s *Store) Pack(ctx context.Context, o PackOptions) (backend.PackReport, error) {
	engine, err := ability[backend.Packer](ctx, s)
	if err != nil {
		return backend.PackReport{}, fmt.Errorf("pack: %w", err)
	}
	return engine.Pack(ctx, o)
}
