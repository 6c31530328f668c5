package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Survey is the result of a collection's search in a copy of a log. It does not change the copy.
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
	c, err := e.collect(ctx, o)
	if err != nil {
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

// FilterDead removes from a commit what is not in a set, and adds what it removed to a report. It reports whether the commit
// changed.
func FilterDead(s *Sequenced, set *live.Set, r *backend.CollectReport) (changed bool, err error) {
	if s.Number > set.Until {
		return false, nil
	}
	c, err := structure.DecodeCommit(s.Payload)
	if err != nil {
		return false, fmt.Errorf("commit %d: %w", s.Number, err)
	}
	c.Number = s.Number
	var gone live.Counts
	if !set.Filter(c, &gone) {
		return false, nil
	}
	c.Records = slices.DeleteFunc(c.Records, func(r structure.Record) bool { return r == nil })
	var encoder structure.Encoder
	payload, _, err := encoder.Encode(c)
	if err != nil {
		return false, fmt.Errorf("commit %d: %w", s.Number, err)
	}
	s.Payload = payload
	gone.AddTo(r)
	return true, nil
}
