package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A collection is pending from the moment when its live set is in a file beside the journal until no dead record is
// left in the journal. Meanwhile the journal is read through the filter: the index is built from filtered commits,
// readers do not see dead records, and the barrier hides them from new commits. So after a crash the store is either
// as before or as after the collection.

// errPending is returned for an index that does not match the journal filtered by the
// pending collection.
var errPending = errors.New("a collection was interrupted")

// pendingEntry identifies the collection that the index accounts for, by its last commit.
func pendingEntry(l *live.Set) index.Entry {
	return index.Entry{Key: keys.Of(keys.TablePendingCollection), Value: binary.AppendUvarint(nil, l.Until)}
}

// savePending makes a collection pending. After an error it may be pending too, if maybe is
// true.
func (e *Engine) savePending(l *live.Set) (maybe bool, err error) {
	if err := e.journal.Sync(l.Until); err != nil { // a commit that replaces a lost one must not be filtered
		return false, err
	}
	tmp := e.dir.pending() + unfinished
	if err := e.dir.remove(tmp); err != nil {
		return false, err
	}
	f, err := e.opt.FS.Create(tmp)
	if err != nil {
		return false, err
	}
	if err = live.Write(io.NewOffsetWriter(f, 0), e.journal.StoreID(), l); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return false, errors.Join(err, e.dir.remove(tmp))
	}
	// If one of the following steps fails, it may have taken effect on disk.
	if err := e.opt.FS.Rename(tmp, e.dir.pending()); err != nil {
		return true, err
	}
	return true, e.opt.FS.SyncDir(filepath.Dir(tmp))
}

// dropBarrier drops the barrier once no dead record is left in the journal.
func (e *Engine) dropBarrier() {
	e.write.Lock()
	defer e.write.Unlock()
	e.setBarrier(nil)
	state := e.index.State()
	state.Counts = e.counts.Values()
	e.index.Apply(state, []index.Entry{{Key: keys.Of(keys.TablePendingCollection)}})
}

// endPending ends the pending collection: journal and index are filtered.
func (e *Engine) endPending() error {
	if err := e.index.Checkpoint(); err != nil {
		return err
	}
	if err := e.dir.remove(e.dir.pending()); err != nil {
		return err
	}
	return e.opt.FS.SyncDir(e.dir.journal())
}

// openPending raises the barrier of the pending collection of a store that is being opened.
// The index must account for the collection, or be empty.
func (e *Engine) openPending() error {
	set, owner, err := live.ReadFile(e.opt.FS, e.dir.pending())
	var damage *backend.CorruptError
	if errors.As(err, &damage) {
		damage.What += "; without the file, records that the collection has not yet deleted reappear"
	} else if set != nil && owner != e.journal.StoreID() {
		err = &backend.CorruptError{File: e.dir.pending(), What: "belongs to another store"}
	} else if set != nil && set.Until > e.journal.Last() && e.damage == nil {
		err = &backend.CorruptError{File: e.dir.pending(), What: fmt.Sprintf("knows commit %d, but the journal ends with commit %d", set.Until, e.journal.Last())}
	}
	if errors.Is(err, backend.ErrCorrupt) && e.opt.ReadOnly {
		set = nil
		e.damage, err = cmp.Or(e.damage, err), nil
	}
	if err != nil {
		return err
	}
	value, counts, err := e.index.Get(keys.Of(keys.TablePendingCollection))
	if err != nil {
		return err
	}
	if !e.opt.ReadOnly {
		if err := e.dir.remove(e.dir.pending() + unfinished); err != nil {
			return err
		}
	}
	if set == nil {
		if counts {
			return errPending
		}
		return nil
	}
	entry := pendingEntry(set)
	state := e.index.State()
	if state.Number > 0 && string(value) != string(entry.Value) {
		return errPending
	}
	if !e.opt.ReadOnly {
		if _, err := e.dir.removeFollowers(); err != nil {
			return err
		}
	}
	if state.Number == 0 {
		state.Store = e.journal.StoreID()
		e.index.Apply(state, []index.Entry{entry})
	}
	b := newBarrier(set)
	e.setBarrier(b)
	e.collected.Store(true)
	e.collecting.done = true
	return e.passBefore(b, state.Number)
}

// passBefore tells the barrier about the commits after it that are in the index.
func (e *Engine) passBefore(b *barrier, last uint64) error {
	for f, err := range e.journal.Frames(e.journal.Find(b.live.Until + 1)) {
		if err != nil {
			return err
		}
		if f.Number > last {
			return nil
		}
		if f.Mark || f.Number <= b.live.Until {
			continue
		}
		c, err := e.decodeFrame(f)
		if err != nil {
			return err
		}
		b.noteLater(c.Commit)
	}
	return nil
}

// finishPending finishes an interrupted collection.
func (c *collection) finishPending() error {
	e := c.engine
	if c.barrier = e.barrier.Load(); c.barrier == nil {
		return nil
	}
	c.live = c.barrier.live
	if !e.collecting.done { // the collection failed before it changed the index
		if _, err := e.savePending(c.live); err != nil { // it may have failed in this step
			return err
		}
		snapshot := e.latest()
		defer snapshot.Close()
		if err := c.prune(snapshot); err != nil {
			return err
		}
		return c.sweep()
	}
	if err := c.filter(e.commitsAt(journal.Position{}, 1, c.live.Until, nil), nothing); err != nil {
		return err
	}
	return c.sweep()
}
