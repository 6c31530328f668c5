package collect

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// Sweep rewrites the journal files that contain dead records, newest first. A journal of which only a later part is
// swept can be replayed, because deletions are kept and live records refer only to live ones. After that, dead
// records remain only in files that readers have open. These files are removed when the last reader closes them.
func (c *Collection) Sweep() error {
	store := c.store
	if c.report.Records+c.report.Erased > 0 {
		store.Control.Copies = true
	}
	if len(c.files) > 0 {
		if err := store.Journal.Seal(); err != nil {
			return err
		}
	}
	for _, s := range slices.Backward(store.Journal.Segments()) {
		if !c.holdsDead(s) {
			continue
		}
		if err := c.rewrite(s); err != nil {
			return err
		}
	}
	c.dropBarrier()
	if err := store.Engine.DropPacked(c.ctx); err != nil && c.ctx.Err() == nil {
		store.Logger.Warn("index keeps entries that packs replace", "err", err)
	}
	if store.Control.Copies { // perhaps of an earlier collection, which failed here
		err := store.Engine.CompactIndex(c.ctx)
		if errors.Is(err, fs.ErrPermission) { // not every system can replace an open file
			store.Logger.Warn("index is not compacted: deleted entries stay in its free pages until these are used or it is rebuilt", "err", err)
			err = nil
		}
		if err != nil {
			return err
		}
		if c.report.Removed, err = store.Engine.RemoveCopies(c.ctx); err != nil {
			return err
		}
		store.Control.Copies = false
	}
	return c.endPending()
}

func (c *Collection) rewrite(s journal.SegmentInfo) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	before := c.done
	err := c.store.Engine.Rewrite(ctx, s, c.filterCommit, func(done, total int64) {
		if err := c.progress(before + s.Bytes*done/max(total, 1) - c.done); err != nil {
			cancel(err)
		}
	})
	if err != nil {
		return err
	}
	return c.progress(before + s.Bytes - c.done)
}

func (c *Collection) holdsDead(s journal.SegmentInfo) bool {
	for n := s.First; n <= s.Last; n++ {
		if c.files[n] {
			return true
		}
	}
	return false
}

func (c *Collection) filterCommit(commit *structure.Commit) error {
	c.live.Filter(commit, new(live.Removed))
	return nil
}

// dropBarrier drops the barrier once no dead record is left in the journal.
func (c *Collection) dropBarrier() {
	store := c.store
	store.Write.Lock()
	defer store.Write.Unlock()
	store.Control.Barrier.Store(nil)
	store.Engine.Hide(nil)
	state := store.Index.State()
	state.Counts = store.Counts.Values()
	store.Index.Apply(state, []index.Entry{{Key: keys.Of(keys.TablePendingCollection)}})
}

// endPending ends the pending collection: journal and index are filtered.
func (c *Collection) endPending() error {
	if err := c.store.Index.Checkpoint(); err != nil {
		return err
	}
	return c.store.Pending.remove()
}
