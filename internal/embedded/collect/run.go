package collect

// Run takes all steps, after those that an interrupted collection has left. With DryRun it only reports what it would
// remove.
func (c *Collection) Run() error {
	c.total = passes * c.store.Journal.Size()
	before := c.size()
	if !c.opt.DryRun {
		earlier := Collection{ctx: c.ctx, store: c.store, opt: c.opt, total: c.total}
		if err := earlier.finish(); err != nil {
			return err
		}
		c.report, c.done = earlier.report, earlier.done
	}
	c.report.Before = before
	if err := c.Mark(); err != nil {
		return err
	}
	if c.opt.DryRun {
		c.live = c.marker.Live
		return c.count(c.store.Engine.Commits(c.live.Until, c.store.Control.Barrier.Load()))
	}
	raised, err := c.Raise()
	if err != nil {
		return err
	}
	defer raised.Close()
	if err := c.Prune(raised); err != nil {
		return err
	}
	if err := c.Sweep(); err != nil {
		return err
	}
	c.report.After = c.size()
	return c.progress(max(c.total-c.done, 0))
}

// finish finishes the collection that is pending, if one is.
func (c *Collection) finish() error {
	store := c.store
	if c.barrier = store.Control.Barrier.Load(); c.barrier == nil {
		return nil
	}
	c.live = c.barrier.live
	if !store.Control.Pruned { // the collection failed before it changed the index
		if _, err := c.savePending(); err != nil { // it may have failed in this step
			return err
		}
		now := store.Engine.Latest()
		defer now.Close()
		if err := c.Prune(now); err != nil {
			return err
		}
		return c.Sweep()
	}
	if err := c.count(store.Engine.Commits(c.live.Until, nil)); err != nil {
		return err
	}
	return c.Sweep()
}
