package embedded

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/structure"
)

// sweep rewrites the journal files that contain dead records, newest first. A journal of which only a later part is
// swept can be replayed, because deletions are kept and live records refer only to live ones. After that, dead
// records remain only in files that readers have open. These files are removed when the last reader closes them.
func (c *collection) sweep() error {
	e := c.engine
	if len(c.files) > 0 {
		if err := e.journal.Seal(); err != nil {
			return err
		}
	}
	for _, s := range slices.Backward(e.journal.Segments()) {
		if !c.holdsDead(s) {
			continue
		}
		if err := c.rewrite(s); err != nil {
			return err
		}
	}
	e.dropBarrier()
	if err := e.dropPacked(c.ctx); err != nil && c.ctx.Err() == nil {
		e.opt.Logger.Warn("index keeps entries that packs replace", "err", err)
	}
	if c.report.Records+c.report.Erased > 0 {
		err := e.compactIndex(c.ctx)
		if errors.Is(err, fs.ErrPermission) { // not every system can replace an open file
			e.opt.Logger.Warn("index is not compacted: deleted entries stay in its free pages until these are used or it is rebuilt", "err", err)
			err = nil
		}
		if err != nil {
			return err
		}
		if c.report.Removed, err = e.dir.removeFollowers(); err != nil {
			return err
		}
	}
	return e.endPending()
}

func (c *collection) rewrite(s journal.SegmentInfo) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	before := c.done
	_, err := c.engine.journal.Rewrite(ctx, s.First, s.Last, journal.RewriteOptions{
		Yield:  c.engine.queue.giveWay(),
		Filter: c.filterCommit, Unlisted: c.engine.unlisted(s.First, s.Dense),
		Progress: func(done, total int64) {
			if err := c.progress(before + s.Bytes*done/max(total, 1) - c.done); err != nil {
				cancel(err)
			}
		},
	})
	c.engine.frames.Clear()
	if err != nil {
		return err
	}
	return c.progress(before + s.Bytes - c.done)
}

func (c *collection) holdsDead(s journal.SegmentInfo) bool {
	for n := s.First; n <= s.Last; n++ {
		if c.files[n] {
			return true
		}
	}
	return false
}

func (c *collection) filterCommit(commit *structure.Commit) error {
	c.live.Filter(commit, new(live.Counts))
	return nil
}
