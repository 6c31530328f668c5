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

// settlePause is the pause before a search begins again while another process changes the index.
const settlePause = 20 * time.Millisecond

// search implements index.
func (x *sharedIndex) search(ctx context.Context, f *finding) ([]Hit, error) {
	if f.Vector != nil {
		return nil, x.Embed(ctx)
	}
	f.view = x.shared
	for {
		denied := x.Update(ctx)
		if denied != nil && !errors.Is(denied, searched.ErrReadOnly) {
			return nil, denied
		}
		if f.scope.Unsettled = denied != nil; denied != nil {
			if err := x.tellBehind(ctx); err != nil {
				return nil, errors.Join(err, denied)
			}
		}
		changed := searched.ErrUnsettled
		if denied != nil {
			changed = lineage.ErrExpired // what the store had when the search began
		}
		hits, err := x.find(ctx, f)
		if !errors.Is(err, changed) {
			return hits, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(settlePause):
		}
	}
}

// find searches the index. What it finds in one that may be behind, it compares with the store.
func (x *sharedIndex) find(ctx context.Context, f *finding) ([]Hit, error) {
	f.present = nil
	if f.scope.Unsettled {
		f.present = newPresent(x.store, f.scope.User)
		defer f.present.close()
	}
	return f.find(ctx)
}

// tellBehind reports how many commits the index does not have.
func (x *sharedIndex) tellBehind(ctx context.Context) error {
	mark, err := x.shared.Mark(ctx)
	if err != nil {
		return err
	}
	head, err := x.store.View().Head(ctx)
	if err == nil && x.options.Behind != nil && head.Number > mark.At.Number {
		x.options.Behind(head.Number - mark.At.Number)
	}
	return err
}
