package maintenance

import (
	"context"
	"errors"
	"io"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/follow"
)

// verifySources checks that each session file can be reproduced byte for byte, unless it was deleted or a part was
// erased.
func verifySources(ctx context.Context, s *app.OpenStore, found func(backend.Finding) error) error {
	for source, err := range follow.Sources(ctx, s.Store) {
		if err == nil {
			err = source.Export(ctx, io.Discard)
		}
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case err == nil, errors.Is(err, lineage.ErrErased), errors.Is(err, lineage.ErrNotFound):
			continue
		}
		if err := found(backend.Finding{Subject: "session file", Problem: err.Error()}); err != nil {
			return err
		}
	}
	return nil
}
