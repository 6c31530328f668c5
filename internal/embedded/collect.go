package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var (
	_ backend.Collector = (*Engine)(nil)
	_ collect.Engine    = (*collected)(nil)
)

// Collect implements backend.Collector. It marks what is live, hides the rest from new
// commits, deletes it from the index, and then rewrites the journal files that contain
// dead records. The collection is pending (see pendingFile) from the end of marking
// until the last file is rewritten.
func (e *Engine) Collect(ctx context.Context, o backend.CollectOptions) (backend.CollectReport, error) {
	if err := e.begin(); err != nil {
		return backend.CollectReport{}, err
	}
	defer e.end()
	if e.opt.ReadOnly && !o.DryRun {
		return backend.CollectReport{}, fmt.Errorf("collect: %w", backend.ErrReadOnly)
	}
	c := e.newCollection(ctx, o)
	err := e.collect(ctx, c)
	return c.Report(), err
}

func (e *Engine) collect(ctx context.Context, c *collect.Collection) error {
	err := e.collecting.One.Acquire(ctx)
	if err == nil {
		defer e.collecting.One.Release()
		err = e.packing.Acquire(ctx)
	}
	if err == nil {
		defer e.packing.Release()
		err = c.Run()
	}
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	return nil
}

func (e *Engine) newCollection(ctx context.Context, o backend.CollectOptions) *collect.Collection {
	return collect.New(ctx, collect.Store{
		Engine: (*collected)(e), Control: &e.collecting, Journal: e.journal, Index: e.index, Pending: e.dir.pending(), Logger: e.opt.Logger,
		Write: &e.write, Counts: &e.counts, Cache: e.cache,
	}, o)
}

// collected is an engine as a collection sees it.
type collected Engine

func (c *collected) Closed() error {
	if c.closed.Load() { // Close waits only for the current step
		return fmt.Errorf("store: %w", backend.ErrClosed)
	}
	return nil
}

func (c *collected) Latest() collect.View {
	at := (*Engine)(c).latest()
	return collect.View{Index: at.Snapshot, Commits: at.viewed().history(), Close: at.Close}
}

func (c *collected) Commits(until uint64, hidden *collect.Barrier) iter.Seq2[collect.Commit, error] {
	return func(yield func(collect.Commit, error) bool) {
		for f, err := range (*Engine)(c).commitsAt(journal.Position{}, 1, until, hidden) {
			if !yield(f.collected(), err) {
				return
			}
		}
	}
}

func (c *collected) Rebuild(until uint64, hidden *collect.Barrier, filter func(collect.Commit) error) (*index.Snapshot, func(), error) {
	e := (*Engine)(c)
	shadow, remove, err := e.shadow()
	if err != nil {
		return nil, nil, err
	}
	shadow.setBarrier(hidden)
	shadow.beginWith(e.packs.Load().last)
	for f, err := range e.commitsAt(journal.Position{}, 1, until, nil) {
		if err == nil {
			err = filter(f.collected())
		}
		if err == nil {
			if err = shadow.replayCommit(f); err != nil {
				err = fmt.Errorf("commit %d without what is dead: %w", f.Number, err)
			}
		}
		if err == nil {
			err = shadow.index.Throttle()
		}
		if err != nil {
			remove()
			return nil, nil, err
		}
	}
	return shadow.index.Snapshot(), remove, nil
}

func (c *collected) Hide(dead *collect.Barrier) { (*Engine)(c).hide(dead) }

func (c *collected) Rewrite(ctx context.Context, file journal.SegmentInfo, filter func(*structure.Commit) error, progress func(done, total int64)) error {
	e := (*Engine)(c)
	_, err := e.journal.Rewrite(ctx, file.First, file.Last, journal.RewriteOptions{
		Yield: e.queue.giveWay(), Filter: filter, Unlisted: e.unlisted(file.First, file.Dense), Progress: progress,
	})
	e.frames.Clear()
	return err
}

func (c *collected) DropPacked(ctx context.Context) error { return (*Engine)(c).dropPacked(ctx) }

func (c *collected) CompactIndex(ctx context.Context) error { return (*Engine)(c).compactIndex(ctx) }

func (c *collected) RemoveCopies(ctx context.Context) (removed []string, err error) {
	pruned := false
	if prune := c.opt.Prune; prune != nil && !c.dir.inMemory {
		if err := prune(ctx, c.dir.path, (*Engine)(c)); err == nil {
			pruned = true
		} else if !errors.Is(err, fs.ErrNotExist) {
			c.opt.Logger.Warn("the search index is removed, because it could not be pruned", "err", err)
		}
	}
	return c.dir.removeFollowers(pruned)
}

// history returns the commits of the view without the parts that are hidden from it.
func (v view) history() live.View {
	return live.View{View: v.View, History: func(from, until uint64) iter.Seq2[live.Commit, error] {
		return func(yield func(live.Commit, error) bool) {
			if from > until {
				return
			}
			start, err := v.at.store.commitPosition(from)
			if err != nil {
				yield(live.Commit{}, err)
				return
			}
			for f, err := range v.at.store.commitsAt(start, from, until, v.at.packs.hidden) {
				if !yield(live.Commit{Commit: f.Commit, Size: f.size}, err) {
					return
				}
			}
		}
	}}
}
