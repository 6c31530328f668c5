package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
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

// Update implements index.
func (x *sharedIndex) Update(ctx context.Context) error {
	return x.shared.Update(ctx, x.store, x.options.Progress)
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
	repaired := false
	for restarts := 0; ; {
		denied := x.Update(ctx)
		if denied != nil && !errors.Is(denied, searched.ErrReadOnly) {
			return nil, denied
		}
		var behind uint64
		if f.scope.Unsettled = denied != nil; denied != nil {
			var err error
			if behind, err = x.behind(ctx); err != nil {
				return nil, errors.Join(err, denied)
			}
		}
		f.view = x.shared.View()
		hits, err := x.find(ctx, f)
		switch {
		case errors.Is(err, searched.ErrDamaged):
			if repaired {
				return nil, err
			}
			repaired = true
		case denied != nil && errors.Is(err, lineage.ErrExpired): // what the store had when the search began
			if restarts++; restarts > mostRestarts {
				return nil, err
			}
		case !errors.Is(err, searched.ErrUnsettled):
			if err == nil && behind > 0 && x.options.Behind != nil {
				x.options.Behind(behind)
			}
			return hits, err
		case denied != nil || errors.Is(err, searched.ErrRebuilt):
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

// find searches the index. What it finds in one that may be behind, it compares with the store.
func (x *sharedIndex) find(ctx context.Context, f *activeSearch) ([]Hit, error) {
	f.present = nil
	if f.scope.Unsettled {
		f.present = newPresent(x.store, f.scope.User)
		defer f.present.close()
	}
	return f.find(ctx)
}

// behind returns how many commits the index does not have.
func (x *sharedIndex) behind(ctx context.Context) (uint64, error) {
	mark, err := x.shared.Mark(ctx)
	if err != nil {
		return 0, err
	}
	head, err := x.store.View().Head(ctx)
	if err != nil {
		return 0, err
	}
	return head.Number - min(mark.At.Number, head.Number), nil
}
