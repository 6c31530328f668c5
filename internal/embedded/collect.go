package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var _ backend.Collector = (*Engine)(nil)

// collectingFile is in a store directory while the index may say less than the
// journal: from when a collection begins to take the dead out of the index until
// they are out of the journal. A store that is opened with it makes its index anew.
const collectingFile = "COLLECTING"

// searchFile is what a search index beside the journal is kept in. It follows the
// feed and is made anew when it is opened.
const searchFile = "search.db"

// cutSuffix ends the names of files of bytes that recovery set aside.
const cutSuffix = ".cut"

// collecting is the state of collections.
type collecting struct {
	one sync.Mutex // one collection at a time

	// pruned guards what the index and the barrier say together: whoever compares
	// the index with the journal takes it for reading while it takes both.
	pruned sync.RWMutex
	done   bool // the index has lost what the barrier calls dead
}

// Collect implements backend.Collector. It finds what lives, makes what is dead
// unknown to new commits, takes it out of the index, and then writes anew the files
// of the journal that hold any of it. Until the last of these is in place the store
// says so in a file; whatever interrupts it, the journal holds all that lives, and
// the index can be made from it.
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

// collection is a collection under way.
type collection struct {
	ctx    context.Context
	engine *Engine
	opt    backend.CollectOptions
	report backend.CollectReport

	marker  *marker
	files   map[uint32]bool // numbers of journal files, with whether anything in them is dead
	done    int64           // bytes of work
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

// The journal is read once to mark, once to filter into an index, and written
// once more at most.
const passes = 3

func (c *collection) progress(n int64) error {
	c.done += n
	if c.opt.Progress != nil {
		c.opt.Progress(c.done, max(c.done, c.total))
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if c.engine.closed.Load() { // Close waits, but not for the rest
		return fmt.Errorf("store: %w", backend.ErrClosed)
	}
	return nil
}

func (c *collection) run() error {
	e := c.engine
	c.total = passes * e.journal.Size()
	c.report.Before = c.size()
	if err := c.mark(); err != nil {
		return err
	}
	if c.opt.DryRun {
		return c.count()
	}
	is, err := c.raise()
	if err != nil {
		return err
	}
	defer is.Close()
	if err := c.prune(is); err != nil {
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

// mark finds out what lives as of now.
func (c *collection) mark() error {
	s := c.engine.latest()
	defer s.Close()
	c.marker = newMarker(c.ctx, view{engine: c.engine, index: s}, c.opt)
	if err := c.marker.roots(); err != nil {
		return err
	}
	c.report.Commit = c.marker.live.until
	return c.marker.scan(c.progress)
}

// count filters the journal and looks at nothing but how much goes.
func (c *collection) count() error {
	s := c.engine.latest()
	defer s.Close()
	return c.filter(view{engine: c.engine, index: s}, func(commitFrame) error { return nil })
}

// filter shows what is left of each commit.
func (c *collection) filter(v view, left func(commitFrame) error) error {
	var gone collected
	c.files = make(map[uint32]bool)
	for f, err := range v.commits(c.marker.live.until) {
		if err != nil {
			return err
		}
		if c.marker.live.filter(f.Commit, &gone) {
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
	r.Records, r.Spans, r.Blocks, r.Chunks, r.Erased, r.Bytes = gone.records, gone.spans, gone.blocks, gone.chunks, gone.erased, gone.bytes
	r.Files = len(c.files)
	if r.Records+r.Erased > 0 {
		r.Elsewhere = elsewhere
	}
	return nil
}

// elsewhere is where a collection removes nothing.
var elsewhere = []string{
	"backups and other copies of the store",
	"bundles and exports",
	"projections in databases, until they are brought up to date, and what the databases keep of deleted rows",
	"free blocks and snapshots of the file system",
}

// fewCommits is how many commits may be followed while writing is held.
const fewCommits = 64

// raise follows the commits that came meanwhile and then, while none comes, puts
// up the barrier. It returns the state as of that moment.
func (c *collection) raise() (*catalog, error) {
	e := c.engine
	for range 8 {
		if e.index.Number()-c.marker.live.until <= fewCommits {
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
	c.report.Commit = c.marker.live.until
	c.barrier = newBarrier(c.marker.live)
	e.collected.Store(true)
	e.barrier.Store(c.barrier)
	e.collecting.done = false
	e.forgetRecent()
	return e.latest(), nil
}

func (c *collection) follow() error {
	s := c.engine.latest()
	defer s.Close()
	return c.marker.follow(view{engine: c.engine, index: s})
}

// forgetRecent makes everything be looked up anew. The lock on writing is held.
func (e *Engine) forgetRecent() {
	e.current.forget()
	e.runs.clear()
	e.digests.clear()
}

// prune makes the index that the journal will have, and changes the one in use
// into it. An error before that begins takes the barrier down again.
func (c *collection) prune(is *catalog) (err error) {
	e := c.engine
	begun := false
	defer func() {
		if err != nil && !begun {
			e.barrier.Store(nil)
		}
	}()
	shadow, discard, err := e.shadow()
	if err != nil {
		return err
	}
	defer discard()
	shadow.barrier.Store(newBarrier(c.marker.live))
	shadow.beginWith(is.below.last)
	shadow.hide(shadow.barrier.Load())
	err = c.filter(view{engine: e, index: is}, func(f commitFrame) error {
		if err := shadow.replayCommit(f); err != nil {
			return fmt.Errorf("commit %d without what is dead: %w", f.Number, err)
		}
		return shadow.index.Throttle()
	})
	if err != nil {
		return err
	}
	if err := e.leaveMark(); err != nil {
		return err
	}
	begun = true
	e.write.Lock()
	e.hide(c.barrier)
	e.write.Unlock()
	will := shadow.index.Snapshot()
	defer will.Close()
	e.collecting.pruned.Lock()
	defer e.collecting.pruned.Unlock()
	if err := c.change(is.Snapshot, will); err != nil {
		return err
	}
	e.collecting.done = true
	return nil
}

// batchEntries is how many entries of the index are changed while writing is held.
const batchEntries = 4 << 10

// change applies the difference between two states to the index, but for what
// later commits have changed themselves.
func (c *collection) change(is, will *index.Snapshot) error {
	p := pruning{engine: c.engine, will: will}
	for change, err := range difference(is, will) {
		if err != nil {
			return err
		}
		if err := p.add(change); err != nil {
			return err
		}
	}
	return p.flush(func() {
		e := c.engine
		e.counts = e.counts.since(countersOf(is.State().Counts), countersOf(will.State().Counts))
		e.current.forget()
	})
}

// sweep writes anew the files of the journal that hold anything dead, the newest
// first: what is left of a journal whose later part was swept can be replayed, for
// deletions stay and what lives needs nothing that does not. Then nothing of what
// is dead is left but in files that somebody reads, which go with the last reader.
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
	e.write.Lock()
	e.hide(nil)
	e.barrier.Store(nil)
	e.write.Unlock()
	if err := e.leaveToPacks(c.ctx); err != nil && c.ctx.Err() == nil {
		e.opt.Logger.Warn("index keeps what packs hold", "err", err)
	}
	if c.report.Records+c.report.Erased > 0 {
		err := e.index.Compact(c.ctx)
		if errors.Is(err, fs.ErrPermission) { // not every system can replace an open file
			e.opt.Logger.Warn("index is not compacted: deleted entries stay in its free pages until these are used or it is rebuilt", "err", err)
			err = nil
		}
		if err != nil {
			return err
		}
		if c.report.Removed, err = e.removeFollowers(); err != nil {
			return err
		}
	}
	return e.removeMark()
}

func (c *collection) rewrite(s journal.SegmentInfo) error {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	before := c.done
	_, err := c.engine.journal.Rewrite(ctx, s.First, s.Last, journal.RewriteOptions{
		Yield:  c.engine.giveWay(),
		Filter: c.filterCommit, Unlisted: c.engine.unlisted(s.First, s.Dense),
		Progress: func(done, total int64) {
			if err := c.progress(before + s.Bytes*done/max(total, 1) - c.done); err != nil {
				cancel(err)
			}
		},
	})
	c.engine.frames.clear()
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
	c.marker.live.filter(commit, new(collected))
	return nil
}

// removeFollowers removes the files that may hold what was collected and that the
// store does not need, and returns their paths in the store's directory: bytes that
// recovery set aside, a search index, and the index from before a repair.
func (e *Engine) removeFollowers() (removed []string, err error) {
	names, err := e.opt.FS.List(filepath.Join(e.dir, journalDir))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, cutSuffix) {
			if err := e.opt.FS.Remove(filepath.Join(e.dir, journalDir, name)); err != nil {
				return removed, err
			}
			removed = append(removed, journalDir+"/"+name)
		}
	}
	if e.opt.InMemory {
		return removed, nil
	}
	for _, name := range []string{searchFile, searchFile + "-wal", searchFile + "-shm", searchFile + "-journal", IndexBeforeRepair} {
		switch removeErr := os.Remove(filepath.Join(e.dir, name)); {
		case removeErr == nil:
			removed = append(removed, name)
		case !errors.Is(removeErr, fs.ErrNotExist):
			err = errors.Join(err, removeErr)
		}
	}
	return removed, errors.Join(err, e.opt.FS.SyncDir(filepath.Join(e.dir, journalDir)), vfs.OS().SyncDir(e.dir))
}

func (e *Engine) markPath() string { return filepath.Join(e.dir, collectingFile) }

// leaveMark makes the mark of a collection durable. In memory nothing outlives one that fails.
func (e *Engine) leaveMark() error {
	if e.opt.InMemory {
		return nil
	}
	f, err := vfs.OpenFile(e.markPath(), os.O_CREATE|os.O_WRONLY)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), vfs.OS().SyncDir(e.dir))
}

// removeMark is called when the index in the file says what the journal says.
func (e *Engine) removeMark() error {
	if err := e.index.Checkpoint(); err != nil || e.opt.InMemory {
		return err
	}
	if err := os.Remove(e.markPath()); err != nil {
		return err
	}
	return vfs.OS().SyncDir(e.dir)
}

// halfPruned reports whether a collection left the index before it was done, which
// then is not to be used, and removes it.
func (e *Engine) halfPruned() (bool, error) {
	if _, err := vfs.Size(e.markPath()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	e.opt.Logger.Warn("index is rebuilt from the journal: a collection was interrupted")
	if e.opt.ReadOnly {
		return true, nil
	}
	if _, err := e.removeFollowers(); err != nil {
		return false, err
	}
	for _, path := range []string{e.indexPath(), e.markPath()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if err := vfs.OS().SyncDir(e.dir); err != nil {
			return false, err
		}
	}
	return true, nil
}
