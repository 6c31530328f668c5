package lineage

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// recently returns a context, as it may have been some commits ago if a recent state will do.
// behind is set where it may be: who makes a commit for it states its tip, and asks again for
// the latest state where the tip has moved.
func (s *Store) recently(ctx context.Context, id ContextID, recent bool) (c backend.Context, behind bool, err error) {
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
