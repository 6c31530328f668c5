package searchindex

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
)

// Update implements searched.Index.
func (x *Index) Update(ctx context.Context, store *lineage.Store, u searched.Updating) error {
	err := x.update(ctx, store, u)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("search index: %w", context.Cause(ctx))
	}
	if x.server.Denied(err) {
		return fmt.Errorf("%w: %w", searched.ErrReadOnly, err)
	}
	if err != nil {
		return fmt.Errorf("search index: %w", err)
	}
	return nil
}

func (x *Index) update(ctx context.Context, store *lineage.Store, u searched.Updating) (err error) {
	head, err := store.View().Head(ctx)
	if err != nil {
		return err
	}
	w := x.work(u.Until)
	defer func() {
		if err != nil {
			w.release(ctx)
		}
	}()
	repaired := false
	for cleared := 0; cleared < mostRepeated; cleared++ {
		m, err := w.waited(ctx, head, u)
		if err != nil {
			return err
		}
		if m.usable() {
			if m.working(w.owner) { // on commits after head
				return nil
			}
			t := &target{work: w}
			f := derived.Follower[Tx]{Store: store, Target: t, Commits: true, Limit: searched.WindowLimit, Progress: u.Progress, Until: u.Until}
			_, err := f.Run(ctx)
			damaged := errors.Is(err, searched.ErrDamaged) || x.server.Damaged(err)
			switch {
			case errors.Is(err, errWorking): // until there is no more time
				cleared--
				continue
			case errors.Is(err, errCleared):
				continue
			case damaged && repaired:
				return fmt.Errorf("it was made again, and still: %w", err)
			case !damaged && !useless(err):
				return err
			}
			repaired = repaired || damaged
			if m = t.marked; !m.usable() {
				continue
			}
		}
		if err := w.clear(ctx, m); err != nil {
			return err
		}
	}
	return fmt.Errorf("other processes kept clearing it: %w", searched.ErrUnsettled)
}

// mostRepeated limits how often an update begins again because the index does not fit the store.
const mostRepeated = 100

// useless reports whether an error says that the index is not one of the store.
func useless(err error) bool {
	return errors.Is(err, lineage.ErrDiverged) || errors.Is(err, derived.ErrOtherStore)
}

// Collected prunes or clears an index from before a collection. The text that the collection removed goes with that.
func (x *Index) Collected(ctx context.Context, c Collection) (err error) {
	w := x.work(time.Time{})
	defer func() {
		if err != nil {
			w.release(ctx)
		}
	}()
	for range mostRepeated {
		m, err := w.waited(ctx, backend.Cursor{}, searched.Updating{})
		if err != nil || !m.exists || m.usable() {
			return err
		}
		if m.prunable() {
			err := w.prune(ctx, m, c)
			if err == nil || errors.Is(err, errTaken) || errors.Is(err, errNotPruned) || errors.Is(err, backend.ErrExpired) || useless(err) || x.server.Damaged(err) || ctx.Err() == nil && x.server.Slow(err) {
				continue // it is usable now, or marked to be cleared
			}
			return err
		}
		if err := w.clear(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
