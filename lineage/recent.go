package lineage

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// recentContext returns a context, possibly as of some commits ago if recent is set; behind then
// reports that it may be outdated. A commit based on it must expect its tip, and read the latest
// state if the tip has moved.
func (s *Store) recentContext(ctx context.Context, id ContextID, recent bool) (c backend.Context, behind bool, err error) {
	if recent {
		from := s.engine.Recent()
		behind = from != backend.Reader(s.engine)
		if c, err = from.Context(ctx, id); !behind || !isNotFound(err) {
			return c, behind, err
		}
	}
	c, err = s.engine.Context(ctx, id)
	return c, false, err
}
