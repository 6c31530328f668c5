package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// PackOptions configure packing.
type PackOptions = backend.PackOptions

// Pack compresses full segments: bodies in groups, structure field by field. Every message stays
// individually readable. The store can be used meanwhile. If ctx ends, what was packed so far
// remains. If the engine has no packing, the error matches errors.ErrUnsupported.
func (s *Store) Pack(ctx context.Context, o PackOptions) (backend.PackReport, error) {
	p, ok := s.engine.(backend.Packer)
	if !ok {
		return backend.PackReport{}, fmt.Errorf("pack: %w", errors.ErrUnsupported)
	}
	return p.Pack(ctx, o)
}
