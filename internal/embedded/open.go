package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Open opens the store in dir, and creates it if there is none.
func Open(ctx context.Context, dir string, o Options) (*Engine, error) {
	place := dir
	if o.InMemory {
		dir, place = "", "in memory"
	}
	e := newEngine(dir, o.withDefaults())
	e.submissions.New = func() any { return new(submission) }
	if err := e.open(ctx); err != nil {
		e.release()
		return nil, fmt.Errorf("open store %s: %w", place, err)
	}
	return e, nil
}

func (e *Engine) open(ctx context.Context) error {
	if e.opt.InMemory {
		if e.opt.MustExist || e.opt.ReadOnly {
			return backend.ErrNotFound // a new store has nothing to read
		}
	} else if err := e.enterDir(ctx); err != nil {
		return err
	}
	e.absent.begin() // until now another engine in this process may have had the store open
	withoutIndex := false
	err := e.openFiles(ctx, withoutIndex)
	if fault := e.indexFault(err); fault != nil {
		switch {
		case errors.Is(fault, collect.ErrPending): // a collection passes through this state
			e.opt.Logger.Info("index follows an interrupted collection")
		case errors.Is(fault, errAhead): // the journal is damaged, which is reported below
		default:
			e.opt.Logger.Warn("index is rebuilt from the journal", "err", fault)
		}
		if err := e.abandonIndex(); err != nil {
			return err
		}
		withoutIndex = true
		err = e.openFiles(ctx, withoutIndex)
	}
	if err != nil {
		return err
	}
	if e.damage != nil {
		e.opt.Logger.Warn("damaged journal is read up to the damage", "commit", e.index.Number(), "err", e.damage)
	}
	e.schedule.start(e.journal)
	return nil
}

// enterDir locks the directory, creating it if necessary, and deletes temporary files. With the
// lock held it checks again whether the store exists: another process may have created it.
func (e *Engine) enterDir(ctx context.Context) error {
	exists, err := e.dir.hasStore()
	switch {
	case err != nil:
		return err
	case !exists && e.mustExist() && !e.dir.hasLock():
		return backend.ErrNotFound
	case !exists:
		if err := e.dir.create(); err != nil {
			return err
		}
	}
	mode := vfs.Exclusive
	if e.opt.ReadOnly {
		mode = vfs.Shared
	}
	if e.lock, err = waitForLock(ctx, e.dir.path, mode, e.opt.Wait, e.opt.Waiting); err != nil {
		return err
	}
	if !exists {
		switch exists, err = e.dir.hasStore(); {
		case err != nil:
			return err
		case !exists && e.mustExist():
			return backend.ErrNotFound
		}
	}
	if e.opt.Locked != nil {
		if err := e.opt.Locked(); err != nil {
			return err
		}
	}
	if e.opt.ReadOnly {
		return nil
	}
	return e.dir.removeScratch()
}

func (e *Engine) mustExist() bool { return e.opt.MustExist || e.opt.ReadOnly }

// openFiles opens the index and the journal, and updates the index. With withoutIndex it starts
// with an empty index.
func (e *Engine) openFiles(ctx context.Context, withoutIndex bool) error {
	if err := e.openIndex(withoutIndex); err != nil {
		return err
	}
	if err := e.openJournal(); err != nil {
		return err
	}
	return e.replay(ctx)
}

func (e *Engine) openIndex(without bool) (err error) {
	path := e.dir.index()
	if without && e.opt.ReadOnly {
		path = filepath.Join(e.dir.path, "no index is written in read-only mode")
	}
	e.index, err = index.Open(path, index.Options{
		OverlayBytes: e.opt.OverlayBytes,
		ReadOnly:     e.opt.ReadOnly,
		InMemory:     e.opt.InMemory,
		Logger:       e.opt.Logger,
		Held:         e.dir.held,
		Yield:        e.queue.giveWay(),
		Early:        keys.Early,
		Shape:        keys.Shape{},
		Derive:       read.Derive,
		// A checkpoint is made after commits, when the journal is open.
		Durable: func(number uint64) error { return e.journal.Sync(number) },
	})
	return err
}

func (e *Engine) openJournal() (err error) {
	state := e.index.State()
	e.journal, err = journal.Open(e.dir.journal(), journal.Options{
		FS:           e.opt.FS,
		SegmentSize:  e.opt.SegmentSize,
		SyncInterval: e.opt.SyncInterval,
		Durable:      state.Number,
		DurableEnd:   journal.Position{Segment: state.Segment, Offset: state.Offset},
		ReadOnly:     e.opt.ReadOnly,
		MustExist:    e.opt.MustExist,
		Store:        e.opt.ID,
		Logger:       e.opt.Logger,
	})
	if err == nil {
		e.own = e.journal.ID()
	}
	return err
}

// indexFault returns err if the index is the reason why the files could not be opened.
func (e *Engine) indexFault(err error) error {
	var damage *backend.CorruptError
	switch {
	case errors.Is(err, index.ErrUnusable), errors.Is(err, errForeignIndex), errors.Is(err, errPacks), errors.Is(err, collect.ErrPending), errors.Is(err, errAhead),
		errors.Is(err, journal.ErrLookup):
		return err
	case errors.As(err, &damage) && damage.File == e.dir.index():
		return err
	case errors.Is(err, backend.ErrCorrupt) && e.index != nil && e.journal == nil && e.foreignIndex():
		return errForeignIndex
	}
	return nil
}

// foreignIndex reports whether the index belongs to another journal than the one that could not be opened.
func (e *Engine) foreignIndex() bool {
	state := e.index.State()
	j, err := journal.Open(e.dir.journal(), journal.Options{FS: e.opt.FS, ReadOnly: true})
	if err != nil {
		return false
	}
	defer j.Close()
	return state.Number > 0 && state.Store != j.StoreID()
}

// abandonIndex closes index and journal, and removes the index file.
func (e *Engine) abandonIndex() error {
	if e.journal != nil {
		if err := e.journal.Close(); err != nil {
			return err
		}
	}
	if e.index != nil {
		_ = e.index.Close() // the file is deleted anyway
	}
	e.index, e.journal, e.counts = nil, nil, keys.Counters{}
	e.cache.Forget() // the cache is of that index
	if e.opt.ReadOnly || e.opt.InMemory {
		return nil
	}
	if err := os.Remove(e.dir.index()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Close implements backend.Engine. It waits for calls, but not for users of snapshots or
// sequences: these get errExpired.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.schedule.stop()
	e.arrivals.announce()
	e.files.Lock()
	e.schedule.wait.Wait()
	e.holds.expire()
	return e.release()
}

// release closes everything that was opened. It is not an error if the index cannot be folded,
// for example on a full disk: it is updated or rebuilt when the store is opened again.
func (e *Engine) release() error {
	var errs []error
	spare := e.indexIsSpare()
	if e.rebuilt && !spare && e.isSmall() {
		if err := e.compactIndex(context.Background()); err != nil {
			e.opt.Logger.Warn("index takes more space until the store is packed", "err", err)
		}
	}
	if e.index != nil {
		if err := e.index.Close(); err != nil {
			e.opt.Logger.Warn("index stays behind until the store is opened again", "err", err)
			spare = false
		}
	}
	if spare {
		if err := e.removeSpare(); err != nil {
			e.opt.Logger.Warn("index and lookup tables of a dense store are kept", "err", err)
		}
	}
	if e.journal != nil {
		errs = append(errs, e.journal.Close())
	}
	if e.lock != nil {
		if e.opt.Unlocking != nil {
			e.opt.Unlocking()
		}
		errs = append(errs, e.lock.release())
	}
	return errors.Join(errs...)
}
