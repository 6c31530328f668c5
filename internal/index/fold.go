package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/lineage-store/lineage/internal/memtable"
	"github.com/lineage-store/lineage/lineage/backend"
)

// limits bound what a transaction of a fold holds in memory, and tell how large what
// is in use is to be for the file to be written anew.
type limits struct {
	leaves, bytes int
	anew          uint64
}

var defaultLimits = limits{leaves: 4 << 10, bytes: 8 << 20}

// startFold begins to fold the overlay in the background unless a fold runs. The
// caller holds mu.
func (db *DB) startFold() {
	if db.folding || db.closed || !db.folds() || time.Now().Before(db.retryAt) || errors.Is(db.foldErr, backend.ErrCorrupt) {
		return
	}
	if db.frozen == nil {
		if db.applied == db.folded {
			return
		}
		db.frozen, db.active = db.active, newOverlay()
		db.pressure.Store(0)
		db.frozen.state, db.frozen.applied, db.frozen.frozen = db.state, db.applied, db.frozen.Seal()
		db.dropShared()
	}
	db.folding, db.written = true, true
	go db.foldFrozen(db.frozen)
}

func (db *DB) foldFrozen(o *overlay) {
	var use func() (release func())
	err := db.opt.Durable(o.state.Number)
	if err == nil {
		err = removeSums(db.path)
	}
	if err == nil && db.opt.Derive != nil {
		err = db.opt.Derive(&Folding{db: db, overlay: o})
	}
	if err == nil {
		use, err = db.fold(o)
	}
	if err != nil {
		db.opt.Logger.Warn("index checkpoint failed", "err", err)
	}
	db.endFold(func() (release func()) {
		if db.foldErr = err; err != nil {
			// What is frozen stays readable and is tried again.
			db.retryAt = time.Now().Add(time.Second)
		} else {
			db.frozen, db.folded = nil, o.applied
		}
		if use == nil {
			return nil
		}
		return use()
	})
}

// endFold gives back the file that the fold had for itself, after use, which is
// called with mu held. It may return how to let go of what was read before: that can
// take a while, but bbolt may not be closed meanwhile.
func (db *DB) endFold(use func() (release func())) {
	db.mu.Lock()
	release := use()
	if release != nil {
		db.dropShared()
		db.mu.Unlock()
		release()
		db.mu.Lock()
	}
	db.folding = false
	db.idle.Broadcast()
	db.mu.Unlock()
}

// Checkpoint folds everything applied so far and returns when it is done. In memory there is nothing
// to do.
func (db *DB) Checkpoint() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	applied := db.applied
	for tried := false; ; tried = true {
		for db.folding {
			db.idle.Wait()
		}
		switch {
		case db.folded >= applied, db.opt.InMemory:
			return nil
		case db.opt.ReadOnly:
			return fmt.Errorf("index: %w", backend.ErrReadOnly)
		case db.closed:
			return errClosed
		case db.foldErr != nil && (tried || errors.Is(db.foldErr, backend.ErrCorrupt)):
			return db.foldErr
		}
		db.retryAt = time.Time{}
		db.startFold()
	}
}

// Fold begins to fold everything applied so far, in the background.
func (db *DB) Fold() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	db.startFold()
}

// claim folds everything applied so far and then keeps the file for its caller to
// write, who ends that as a fold ends.
func (db *DB) claim() error {
	if err := db.Checkpoint(); err != nil {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	for db.folding {
		db.idle.Wait()
	}
	if db.closed || db.bolt == nil {
		return errClosed
	}
	db.folding, db.written = true, true
	return nil
}

// fold brings an overlay into the file, and returns what to call with mu held to have
// that read; what it returns lets go of what was read before. There can be something
// to use beside an error.
func (db *DB) fold(o *overlay) (use func() (release func()), err error) {
	if err := db.syncName(); err != nil {
		return nil, err
	}
	most, err := db.changesMost(o)
	if err != nil {
		return nil, err
	}
	if most {
		fresh, err := db.writeAnew(context.Background(), o)
		if err == nil {
			return func() func() { return db.replace(fresh) }, db.syncName()
		}
		// Damage may be in what this fold has nothing to do with.
		db.anewAt = time.Now().Add(anewAgain)
		db.opt.Logger.Warn("index is not rewritten but changed in place", "err", err)
	}
	next, err := db.foldInPlace(o)
	if err != nil {
		return nil, err
	}
	return func() func() { return db.rebase(next) }, nil
}

const (
	// anewAgain is for how long nothing is written anew after that failed.
	anewAgain = time.Minute
	// mostUnread is how many files that were replaced may still be read: each takes
	// address space.
	mostUnread = 4
	// canReplace says that a file can take the place of one that is open.
	canReplace = runtime.GOOS != "windows"
)

// changesMost reports whether an overlay changes so many leaves that all of them are
// better written anew, in order and into full pages. Changed in place they leave as
// many pages free and the others half full. Where keys come in no order that writes as
// much; where those of one table do and there are others, up to three times less.
func (db *DB) changesMost(o *overlay) (bool, error) {
	used, come := db.pages.used(), uint64(o.Bytes())
	most := used + used/2 // about four leaves go into a page
	switch {
	case !canReplace, db.unread.Load() >= mostUnread, used*db.pages.size+come < db.limits.anew, time.Now().Before(db.anewAt):
		return false, nil
	case come >= used*db.pages.size:
		return true, nil // what is there is little beside what comes
	case uint64(o.Len()) < most:
		return false, nil
	}
	changed := uint64(0)
	err := db.base.read(func(c *bbolt.Cursor) error {
		for s := newMemorySource(o.Latest(), nil); changed < most; changed++ {
			if db.opt.Yield != nil {
				db.opt.Yield()
			}
			e, ok, _ := s.peek()
			if !ok {
				return nil
			}
			l, err := seekLeaf(c, db.pages, e.Key)
			if err != nil {
				return err
			}
			if l.high == nil {
				return nil
			}
			s.skipTo(l.high)
		}
		return nil
	})
	return changed >= most, err
}

// foldInPlace writes an overlay into bbolt and returns what bbolt then holds. First come
// the entries that may be there early, in as many transactions as memory asks
// for, then the others with the state, in the last. A crash in between leaves
// entries that the state does not account for; the journal is replayed over them.
func (db *DB) foldInPlace(o *overlay) (*base, error) {
	f := db.newFolder(o.Latest())
	for !f.done {
		if err := db.foldPart(f, o.state); err != nil {
			return nil, err
		}
	}
	return openBase(db.kept, db.pages)
}

// rebase has a newer state of the file read, until release the one before, too. The
// caller holds mu.
func (db *DB) rebase(next *base) (release func()) {
	before := db.base
	db.base = next
	return before.release
}

func (db *DB) newFolder(m memtable.Moment) *folder {
	f := &folder{source: newMemorySource(m, nil), limits: db.limits, yield: db.opt.Yield}
	if early := db.opt.Early; early != nil {
		changed := make(map[string]bool)
		f.changed = changed
		f.source.only(func(e Entry) bool { return e.Value != nil && early(e.Key) })
		f.late = func() *memorySource {
			return newMemorySource(m, nil).only(func(e Entry) bool {
				return e.Value == nil || !early(e.Key) || changed[string(e.Key)]
			})
		}
	}
	return f
}

// foldPart is one transaction of a fold.
func (db *DB) foldPart(f *folder, s State) error {
	f.pages = db.pages
	return db.update(func(tx *bbolt.Tx) error { return f.fill(tx, s) })
}

// update is one transaction of bbolt's, after which its pages are checked.
func (db *DB) update(fn func(tx *bbolt.Tx) error) error {
	err := guard(func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) error {
			if tx.Size() > int64(db.mapped-db.mapped/16) {
				return errFull
			}
			return fn(tx)
		})
	})
	switch {
	case errors.Is(err, errPage), errors.Is(err, errLeaf), errors.Is(err, errBounds), errors.Is(err, errStale):
		return corrupt(db.path, err)
	case errors.Is(err, bbolterrors.ErrMaxSizeReached):
		return errFull
	case err != nil:
		return err
	}
	// bbolt spreads damage: what it wrote is not read before it was checked.
	free, err := checkFile(db.file)
	if err != nil {
		return corrupt(db.path, err)
	}
	db.pages = free.mapped(db.bolt, db.mapped)
	return nil
}

var errFull = errors.New("index has outgrown the address space set aside for it: reopen the store")

// folder merges a source into the leaves, a transaction at a time.
type folder struct {
	source  *memorySource
	late    func() *memorySource // what follows the source in the last transaction; may be nil
	changed map[string]bool      // keys of the source that are there with another value: they come late
	limits  limits
	done    bool
	yield   func() // called after each leaf, if it is not nil

	// Of one transaction:
	pages  *pages // as of the one before
	leaves *bbolt.Bucket
	bytes  int // written
}

// fill merges as much as one transaction may hold, and saves the state when it
// comes to the end.
func (f *folder) fill(tx *bbolt.Tx, s State) error {
	f.leaves, f.bytes = tx.Bucket(leavesBucket), 0
	f.leaves.FillPercent = 0.8
	for n := 0; n < f.limits.leaves && f.bytes < f.limits.bytes; n++ {
		first, ok, _ := f.source.peek()
		if !ok {
			return f.finish(tx, s)
		}
		if err := f.leaf(first.Key); err != nil {
			return err
		}
	}
	return nil
}

// finish merges what must not be there before the state, and saves the state.
func (f *folder) finish(tx *bbolt.Tx, s State) error {
	f.done = true
	if f.late != nil {
		f.source, f.changed = f.late(), nil
		for first, ok, _ := f.source.peek(); ok; first, ok, _ = f.source.peek() {
			if err := f.leaf(first.Key); err != nil {
				return err
			}
		}
	}
	return s.save(tx)
}

// leaf merges the next entries of the source into the leaf that the first
// belongs to.
func (f *folder) leaf(key []byte) error {
	if f.yield != nil {
		f.yield()
	}
	c := f.leaves.Cursor()
	old, err := seekLeaf(c, f.pages, key)
	if err != nil {
		return err
	}
	// Where keys are out of order, bbolt would add a second leaf beside the old.
	if k, _ := c.Seek(leafKey(old.low)); len(k) == 0 || !bytes.Equal(k[1:], old.low) {
		return errBounds
	}
	low, high := bytes.Clone(old.low), bytes.Clone(old.high)
	merged, size, err := f.merge(old)
	if err != nil {
		return err
	}
	return f.write(low, high, merged, size)
}

// merge returns the leaf's entries and the source's in its range, in order, and
// about how many bytes they take.
func (f *folder) merge(old leaf) (merged []Entry, size int, err error) {
	source := f.source
	var last []byte
	add := func(e Entry) {
		size += entrySize(last, e.Key, e.Value)
		merged, last = append(merged, e), e.Key
	}
	kept, err := old.list(old.low)
	if err != nil {
		return nil, 0, err
	}
	for {
		e, ok, _ := source.peek()
		ok = ok && old.covers(e.Key)
		switch {
		case !ok && len(kept) == 0:
			return merged, size, nil
		case !ok || len(kept) > 0 && bytes.Compare(kept[0].Key, e.Key) < 0:
			add(kept[0])
			kept = kept[1:]
			continue
		case len(kept) > 0 && bytes.Equal(kept[0].Key, e.Key):
			if f.changed != nil && !bytes.Equal(kept[0].Value, e.Value) {
				f.changed[string(e.Key)] = true
				e = kept[0]
			}
			kept = kept[1:]
		}
		if e.Value != nil {
			add(e)
		}
		source.advance()
	}
}

// write replaces a leaf by as many of about equal size as its entries need. An
// empty leaf stays: it keeps the range.
func (f *folder) write(low, high []byte, entries []Entry, size int) error {
	n := (size + leafTarget - 1) / leafTarget
	share := leafTarget
	if n > 0 {
		share = (size + n - 1) / n
	}
	var w leafWriter
	for i, e := range entries {
		if len(w.entries) >= share && i > 0 {
			if err := f.put(low, w.finish(low, e.Key)); err != nil {
				return err
			}
			low = e.Key
		}
		w.add(e.Key, e.Value)
	}
	return f.put(low, w.finish(low, high))
}

func (f *folder) put(low, leaf []byte) error {
	f.bytes += len(leaf)
	return f.leaves.Put(leafKey(low), leaf)
}
