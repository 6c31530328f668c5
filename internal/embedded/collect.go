package embedded

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

var _ backend.Collector = (*Engine)(nil)

// collecting is the state of collections.
type collecting struct {
	one sync.Mutex // one collection at a time

	// pruned is held for writing while the index and the barrier change together. Code
	// that compares the index with the journal holds it for reading while it loads
	// both.
	pruned sync.RWMutex
	done   bool // the index no longer has what the barrier hides
}

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
	e.collecting.one.Lock()
	defer e.collecting.one.Unlock()
	e.packing.Lock()
	defer e.packing.Unlock()
	c := collection{ctx: ctx, engine: e, opt: o}
	c.setDefaults()
	if err := c.run(); err != nil {
		return c.report, fmt.Errorf("collect: %w", err)
	}
	return c.report, nil
}

// collection is a running collection.
type collection struct {
	ctx    context.Context
	engine *Engine
	opt    backend.CollectOptions
	report backend.CollectReport

	marker  *live.Marker
	live    *live.Set       // set while the write lock is held
	files   map[uint32]bool // numbers of segments with dead records
	done    int64           // bytes of work done
	total   int64
	barrier *barrier
}

func (c *collection) setDefaults() {
	if c.opt.KeepReflog == 0 {
		c.opt.KeepReflog = backend.DefaultKeepReflog
	}
	if c.opt.KeepUnused == 0 {
		c.opt.KeepUnused = backend.DefaultKeepUnused
	}
	if c.opt.Now.IsZero() {
		c.opt.Now = time.Now()
	}
}

// passes is the number of passes over the journal: one to mark, one to filter into an index, at most one to rewrite.
const passes = 3

func (c *collection) progress(n int64) error {
	c.done += n
	if c.opt.Progress != nil {
		c.opt.Progress(c.done, max(c.done, c.total))
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.engine.closed.Load() { // Close waits only for the current step
		return fmt.Errorf("store: %w", backend.ErrClosed)
	}
	return nil
}

func (c *collection) run() error {
	e := c.engine
	c.total = passes * e.journal.Size()
	before := c.size()
	if !c.opt.DryRun {
		earlier := collection{ctx: c.ctx, engine: e, opt: c.opt, total: c.total}
		if err := earlier.finishPending(); err != nil {
			return err
		}
		c.report, c.done = earlier.report, earlier.done
	}
	c.report.Before = before
	if err := c.mark(); err != nil {
		return err
	}
	if c.opt.DryRun {
		c.live = c.marker.Live
		return c.filter(e.commitsAt(journal.Position{}, 1, c.live.Until, e.barrier.Load()), nothing)
	}
	raised, err := c.raise()
	if err != nil {
		return err
	}
	defer raised.Close()
	if err := c.prune(raised); err != nil {
		return err
	}
	if err := c.sweep(); err != nil {
		return err
	}
	c.report.After = c.size()
	return c.progress(max(c.total-c.done, 0))
}

func (c *collection) size() uint64 {
	return uint64(c.engine.journal.Size()) + uint64(c.engine.index.Size())
}

// mark finds everything that is live now.
func (c *collection) mark() error {
	s := c.engine.latest()
	defer s.Close()
	c.marker = live.NewMarker(c.ctx, s.viewed().history(), c.opt)
	if err := c.marker.Roots(); err != nil {
		return err
	}
	c.report.Commit = c.marker.Live.Until
	return c.marker.Scan(c.progress)
}

// nothing is the callback for commits that are only counted.
func nothing(commitFrame) error { return nil }

// filter filters each commit, counts what is dead, and calls left with the rest.
func (c *collection) filter(commits iter.Seq2[commitFrame, error], left func(commitFrame) error) error {
	var gone live.Counts
	c.files = make(map[uint32]bool)
	for f, err := range commits {
		if err != nil {
			return err
		}
		if c.live.Filter(f.Commit, &gone) {
			c.files[f.frame.Position.Segment] = true
		}
		if err := left(f); err != nil {
			return err
		}
		if err := c.progress(f.size); err != nil {
			return err
		}
	}
	r := &c.report
	gone.AddTo(r)
	r.Files += len(c.files)
	if r.Records+r.Erased > 0 {
		r.Elsewhere = elsewhere
	}
	return nil
}

// elsewhere lists places with old data that a collection does not touch.
var elsewhere = []string{
	"backups and other copies of the store",
	"bundles and exports",
	"projections in databases, until they are brought up to date, and what the databases keep of deleted rows",
	"free blocks and snapshots of the file system",
}

// maxFollowedLocked is the largest number of commits to follow while the write lock is
// held.
const maxFollowedLocked = 64

// raise follows commits that arrived during marking. Then, with writes blocked, it
// makes the collection pending and raises the barrier. It returns the state as of that
// moment.
func (c *collection) raise() (*catalog, error) {
	e := c.engine
	for range 8 {
		if e.index.Number()-c.marker.Live.Until <= maxFollowedLocked {
			break
		}
		if err := c.follow(); err != nil {
			return nil, err
		}
	}
	e.collecting.pruned.Lock()
	defer e.collecting.pruned.Unlock()
	e.write.Lock()
	defer e.write.Unlock()
	if err := c.follow(); err != nil {
		return nil, err
	}
	c.report.Commit = c.marker.Live.Until
	c.live = c.marker.Live
	c.barrier = newBarrier(c.live)
	maybe, err := e.savePending(c.live)
	if maybe {
		e.collected.Store(true)
		e.barrier.Store(c.barrier)
		e.collecting.done = false
		e.cache.Forget()
	}
	if err != nil {
		return nil, err
	}
	return e.latest(), nil
}

func (c *collection) follow() error {
	s := c.engine.latest()
	defer s.Close()
	return c.marker.Follow(s.viewed().history())
}

// history returns the commits of the view without the parts that are hidden from it.
func (v view) history() live.View {
	return live.View{View: v.View, History: func(from, until uint64) iter.Seq2[live.Commit, error] {
		return func(yield func(live.Commit, error) bool) {
			if from > until {
				return
			}
			start, err := v.at.engine.commitPosition(from)
			if err != nil {
				yield(live.Commit{}, err)
				return
			}
			for f, err := range v.at.engine.commitsAt(start, from, until, v.at.packs.hidden) {
				if !yield(live.Commit{Commit: f.Commit, Size: f.size}, err) {
					return
				}
			}
		}
	}}
}
