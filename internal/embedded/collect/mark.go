package collect

import "github.com/lineage-store/lineage/internal/embedded/live"

// Mark finds everything that is live now.
func (c *Collection) Mark() error {
	now := c.store.Engine.Latest()
	defer now.Close()
	c.marker = live.NewMarker(c.ctx, now.Commits, c.opt)
	if err := c.marker.Roots(); err != nil {
		return err
	}
	c.report.Commit = c.marker.Live.Until
	return c.marker.Scan(c.progress)
}

// Follow takes account of the commits added since.
func (c *Collection) Follow() error {
	now := c.store.Engine.Latest()
	defer now.Close()
	return c.marker.Follow(now.Commits)
}

// maxFollowedLocked is the largest number of commits to follow while the write lock is
// held.
const maxFollowedLocked = 64

// Raise follows commits that arrived during marking. Then, with writes blocked, it
// makes the collection pending and raises the barrier. It returns the state as of that
// moment, which the caller closes.
func (c *Collection) Raise() (View, error) {
	store := c.store
	for range 8 {
		if store.Index.Number()-c.marker.Live.Until <= maxFollowedLocked {
			break
		}
		if err := c.Follow(); err != nil {
			return View{}, err
		}
	}
	store.Control.Agree.Lock()
	defer store.Control.Agree.Unlock()
	store.Write.Lock()
	defer store.Write.Unlock()
	if err := c.Follow(); err != nil {
		return View{}, err
	}
	c.report.Commit = c.marker.Live.Until
	c.live = c.marker.Live
	c.barrier = NewBarrier(c.live)
	maybe, err := c.savePending()
	if maybe {
		store.Control.Collected.Store(true)
		store.Control.Barrier.Store(c.barrier)
		store.Control.Raised.Add(1)
		store.Control.Pruned = false
		store.Cache.Forget()
	}
	if err != nil {
		return View{}, err
	}
	return store.Engine.Latest(), nil
}

// savePending makes the collection pending. After an error it may be pending too, if maybe is true.
func (c *Collection) savePending() (maybe bool, err error) {
	if err := c.store.Journal.Sync(c.live.Until); err != nil { // a commit that replaces a lost one must not be filtered
		return false, err
	}
	return c.store.Pending.save(c.store.Journal.StoreID(), c.live)
}
