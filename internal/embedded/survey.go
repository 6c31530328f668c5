package embedded

import (
	"context"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Survey is a collection of a copy of a log that only finds out what is live. It does not change the copy. It keeps the engine
// open while it reads.
type Survey struct {
	engine     *Engine
	collection *collect.Collection
}

// Survey finds out what is live.
func (e *Engine) Survey(ctx context.Context, o backend.CollectOptions) (*Survey, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.end()
	o.DryRun = true
	c := e.newCollection(ctx, o)
	if err := e.collect(ctx, c); err != nil {
		return nil, err
	}
	return &Survey{e, c}, nil
}

// Report returns what a collection would remove.
func (s *Survey) Report() backend.CollectReport { return s.collection.Report() }

// Follow takes account of the commits added since.
func (s *Survey) Follow() error {
	if err := s.engine.begin(); err != nil {
		return err
	}
	defer s.engine.end()
	return s.collection.Follow()
}

// Revived reports whether a followed commit made something live that had been found dead.
func (s *Survey) Revived() bool { return s.collection.Revived() }

// LiveSet returns what is live as of the last followed commit.
func (s *Survey) LiveSet() *live.Set { return s.collection.Live() }
