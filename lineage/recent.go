package lineage

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// recentContext returns a context. If recent is set, the context may be as of some commits ago; behind reports that.
// A commit based on it must expect its tip, and read the current state if the tip has moved.
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
