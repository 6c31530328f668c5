package embedded

import (
	"context"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/semaphore"
)

// newEngine returns an engine without open files.
func newEngine(dir string, o Options) *Engine {
	e := &Engine{sessions: newSessions(), packing: semaphore.New(1), unmergeable: map[string]bool{}}
	held := func() error { return e.lock.current() }
	o.FS = lockedFS{o.FS, held}
	e.store = store{
		dir:   directory{path: dir, fs: o.FS, held: held, inMemory: o.InMemory, readOnly: o.ReadOnly},
		opt:   o,
		cache: entries.NewCache(),

		collecting: collect.Control{One: semaphore.New(1)},
	}
	e.reads = reads{store: &e.store, holds: &e.holds}
	e.state.Latest, e.state.Cache = (*latestState)(e), e.cache
	e.setPacks(0, 0, nil)
	e.queue.write, e.queue.sync = e.commitAll, func(last uint64) error { return e.journal.Sync(last) }
	e.schedule.opt, e.schedule.pack, e.schedule.begin, e.schedule.end = &e.opt, e.packSealed, e.begin, e.end
	e.schedule.ctx, e.schedule.cancel = context.WithCancelCause(context.Background())
	return e
}

// shadow returns an engine with the same journal and an empty index, and a function that closes
// and removes that index.
func (e *Engine) shadow() (s *Engine, discard func(), err error) {
	dir, remove := "", func() {}
	if !e.opt.InMemory {
		if dir, remove, err = e.dir.scratch(); err != nil {
			return nil, nil, err
		}
	}
	s = newEngine(dir, e.opt)
	s.journal, s.builder.Digests = e.journal, e.builder.Digests
	s.index, err = index.Open(s.dir.index(), index.Options{OverlayBytes: e.opt.OverlayBytes, InMemory: e.opt.InMemory, Logger: e.opt.Logger})
	discard = func() {
		if s.index != nil {
			_ = s.index.Close() // it is deleted
		}
		remove()
	}
	if err != nil {
		discard()
		return nil, nil, err
	}
	return s, discard, nil
}
