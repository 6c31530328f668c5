package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Survey is what a collection of a log finds out in a copy of it, which it does not change.
type Survey struct{ c collection }

// Survey finds out what lives.
func (e *Engine) Survey(ctx context.Context, o backend.CollectOptions) (*Survey, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.end()
	e.collecting.one.Lock()
	defer e.collecting.one.Unlock()
	e.packing.Lock()
	defer e.packing.Unlock()
	o.DryRun = true
	s := &Survey{collection{ctx: ctx, engine: e, opt: o}}
	s.c.setDefaults()
	if err := s.c.run(); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return s, nil
}

// Report says what a collection would remove.
func (s *Survey) Report() backend.CollectReport { return s.c.report }

// Follow takes the commits into account that came since.
func (s *Survey) Follow() error {
	if err := s.c.engine.begin(); err != nil {
		return err
	}
	defer s.c.engine.end()
	return s.c.follow()
}

// Revived reports whether a commit that was followed made something live that was found dead before.
func (s *Survey) Revived() bool { return s.c.marker.Revived }

// LiveSet returns what lives, as of the last commit that was followed.
func (s *Survey) LiveSet() *live.Set { return s.c.live }

// FilterDead takes out of a commit what is not in a set, and adds that to a report. Of a commit that
// was filtered it takes nothing.
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
