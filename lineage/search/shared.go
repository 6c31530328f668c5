package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
)

// sharedIndex is an index that an engine keeps for all processes.
type sharedIndex struct {
	shared  searched.Index
	store   *lineage.Store
	options Options
}

// Close implements index.
func (x *sharedIndex) Close() error { return nil }

// Embed implements index.
func (x *sharedIndex) Embed(context.Context) error {
	return fmt.Errorf("the search index has no embedder: %w", lineage.ErrInvalid)
}

// update implements index.
func (x *sharedIndex) update(ctx context.Context, until time.Time) error {
	return x.shared.Update(ctx, x.store, searched.Updating{Until: until, Progress: x.options.Progress})
}

// mostRestarts limits how often a search begins again because the index was made again meanwhile.
const mostRestarts = 10

// settlePause is the pause before a search begins again while another process changes the index.
const settlePause = 20 * time.Millisecond

// search implements index.
func (x *sharedIndex) search(ctx context.Context, f *activeSearch) ([]Hit, error) {
	if f.Vector != nil {
		return nil, x.Embed(ctx)
	}
	until, repaired := f.until(), false
	for restarts := 0; ; {
		if err := x.update(ctx, until); !f.setOutdated(err) {
			return nil, err
		}
		if f.outdated != nil {
			mark, err := x.shared.Mark(ctx)
			if errors.Is(err, searched.ErrUnsettled) && errors.Is(f.outdated, derived.ErrUnfinished) { // it is being made again
				return nil, f.setBehind(ctx, 0)
			}
			if err == nil {
				err = f.setBehind(ctx, mark.At.Number)
			}
			if err != nil {
				return nil, errors.Join(err, f.outdated)
			}
		}
		f.view = x.shared.View()
		hits, err := f.find(ctx)
		switch {
		case errors.Is(err, searched.ErrDamaged):
			if repaired {
				return nil, err
			}
			repaired = true
		case f.outdated != nil && errors.Is(err, lineage.ErrExpired): // what the store had when the search began
			if restarts++; restarts > mostRestarts {
				return nil, err
			}
		case !errors.Is(err, searched.ErrUnsettled):
			return hits, err
		case f.outdated != nil || errors.Is(err, searched.ErrRebuilt):
			if restarts++; restarts > mostRestarts {
				return nil, err
			}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(settlePause):
		}
	}
}
