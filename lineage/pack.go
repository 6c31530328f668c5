package lineage

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// PackOptions say what is packed.
type PackOptions = backend.PackOptions

// Pack keeps what is no longer written to in less room: bodies compressed in
// groups, structure coded field by field. Every message stays readable by itself.
// Readers and writers go on meanwhile; ending ctx leaves what was packed so far.
// The error matches errors.ErrUnsupported where the engine does not pack.
func (s *Store) Pack(ctx context.Context, o PackOptions) (backend.PackReport, error) {
	p, ok := s.engine.(backend.Packer)
	if !ok {
		return backend.PackReport{}, fmt.Errorf("pack: this engine does not: %w", errors.ErrUnsupported)
	}
	return p.Pack(ctx, o)
}
