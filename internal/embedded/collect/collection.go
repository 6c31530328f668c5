package collect

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Collection is a running collection. Its steps are Mark, Raise, Prune and Sweep, which Run takes one after another.
type Collection struct {
	ctx    context.Context
	store  Store
	opt    backend.CollectOptions
	report backend.CollectReport

	marker  *live.Marker
	live    *live.Set       // set while the write lock is held
	files   map[uint32]bool // numbers of segments with dead records
	done    int64           // bytes of work done
	total   int64
	barrier *Barrier
}

// New returns a collection of which no step was taken. The caller holds Control.One until its end, and keeps the files of
// the journal from being replaced by others.
func New(ctx context.Context, store Store, o backend.CollectOptions) *Collection {
	if o.KeepReflog == 0 {
		o.KeepReflog = backend.DefaultKeepReflog
	}
	if o.KeepUnused == 0 {
		o.KeepUnused = backend.DefaultKeepUnused
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	return &Collection{ctx: ctx, store: store, opt: o}
}

// Report returns what was removed so far, or with DryRun would be.
func (c *Collection) Report() backend.CollectReport { return c.report }

// Live returns what Mark and Follow found live.
func (c *Collection) Live() *live.Set { return c.marker.Live }

// Revived reports whether Follow found something live that was dead before.
func (c *Collection) Revived() bool { return c.marker.Revived }

// passes is the number of passes over the journal: one to mark, one to filter into an index, at most one to rewrite.
const passes = 3

func (c *Collection) progress(n int64) error {
	c.done += n
	if c.opt.Progress != nil {
		c.opt.Progress(c.done, max(c.done, c.total))
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return c.store.Engine.Closed()
}

func (c *Collection) size() uint64 {
	return uint64(c.store.Journal.Size()) + uint64(c.store.Index.Size())
}

// count counts what is dead in commits.
func (c *Collection) count(commits iter.Seq2[Commit, error]) error {
	filter, done := c.filter()
	for f, err := range commits {
		if err != nil {
			return err
		}
		if err := filter(f); err != nil {
			return err
		}
	}
	done()
	return nil
}

// filter returns a function that removes from a commit what is dead, and one that adds all that was removed to the report.
func (c *Collection) filter() (filter func(Commit) error, done func()) {
	var removed live.Removed
	c.files = make(map[uint32]bool)
	filter = func(f Commit) error {
		if c.live.Filter(f.Commit, &removed) {
			c.files[f.Segment] = true
		}
		return c.progress(f.Size)
	}
	return filter, func() {
		r := &c.report
		removed.AddTo(r)
		r.Files += len(c.files)
		if r.Records+r.Erased > 0 {
			r.Elsewhere = elsewhere
		}
	}
}

// elsewhere lists places with old data that a collection does not touch.
var elsewhere = []string{
	"backups and other copies of the store",
	"bundles and exports",
	"projections in databases, until they are brought up to date, and what the databases keep of deleted rows",
	"free blocks and snapshots of the file system",
}
