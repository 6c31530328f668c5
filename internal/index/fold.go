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

// limits limit the memory of a fold's transaction. rewrite is the least size of used
// pages at which a file is rewritten, and loose that of leaves that are sealed.
type limits struct {
	leaves, bytes int
	rewrite       uint64
	loose         int64
}

var defaultLimits = limits{leaves: 4 << 10, bytes: 8 << 20, loose: minLoose}

// startFold starts to fold the overlay in the background unless a fold is running. The
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
			// The frozen overlay stays readable, and the fold is retried.
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

// endFold ends the exclusive use of the file, after calling use with mu held. use may
// return a function that releases the old state: that may take a while, but bbolt must
// not be closed meanwhile.
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

// Checkpoint folds everything applied so far, and waits for it. In memory it does
// nothing.
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

// Fold starts to fold everything applied so far, in the background.
func (db *DB) Fold() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	db.startFold()
}

// claim folds everything applied so far, and then reserves the file for writing by the
// caller, until endFold.
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

// fold writes an overlay to the file. It returns a function that switches to the
// result, to be called with mu held; that function returns one that releases the old
// state. There may be a result in addition to an error.
func (db *DB) fold(o *overlay) (use func() (release func()), err error) {
	if err := db.syncName(); err != nil {
		return nil, err
	}
	most, err := db.worthRewriting(o)
	if err != nil {
		return nil, err
	}
	if most {
		fresh, err := db.rewriteWith(context.Background(), o)
		if err == nil {
			return func() func() { return db.replace(fresh) }, db.syncName()
		}
		// The damage may be outside the leaves that this fold changes.
		db.rewriteAfter = time.Now().Add(rewriteRetry)
		db.opt.Logger.Warn("index is not rewritten but changed in place", "err", err)
	}
	next, err := db.foldInPlace(o)
	if err != nil {
		return nil, err
	}
	return func() func() { return db.rebase(next) }, nil
}

const (
	// rewriteRetry is the pause after a failed rewrite.
	rewriteRetry = time.Minute
	// maxCopied limits the size of the sealed table that a rewrite copies, compared with
	// the rest of the file.
	maxCopied = 4
	// maxUnread limits the replaced files that are still read: each takes address
	// space.
	maxUnread = 4
	// canReplace reports whether an open file can be replaced.
	canReplace = runtime.GOOS != "windows"
)

// worthRewriting reports whether an overlay changes so many leaves that the whole file
// is better rewritten, in order and with full pages. Changes in place would leave as
// many free pages, and the others half full. For keys in random order, both write the
// same amount; if keys of one table are in order and others are not, a rewrite writes
// up to three times more.
func (db *DB) worthRewriting(o *overlay) (bool, error) {
	inTable := db.kept.tablePages(db.pages.size)
	used, come := db.pages.used()-min(inTable, db.pages.used()), uint64(o.Bytes())
	most := used + used/2 // a page has about four leaves
	switch {
	case inTable > maxCopied*(used+come/db.pages.size): // it would be copied
		return false, nil
	case !canReplace, db.unread.Load() >= maxUnread, used*db.pages.size+come < db.limits.rewrite, time.Now().Before(db.rewriteAfter):
		return false, nil
	case come >= used*db.pages.size:
		return true, nil // existing data is small compared with the new entries
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

// foldInPlace writes an overlay into bbolt and returns the new base. Early entries are
// written first, in as many transactions as the memory limit requires, and the others
// with the state in the last. A crash in between leaves entries that the state does
// not account for; the journal is replayed over them.
func (db *DB) foldInPlace(o *overlay) (*base, error) {
	f := db.newFolder(o.Latest())
	for !f.done {
		if err := db.foldPart(f, o.state); err != nil {
			return nil, err
		}
	}
	return openBase(db.kept, db.pages)
}

// rebase switches to a newer state of the file. release releases the old one. The
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

// foldPart runs one transaction of a fold.
func (db *DB) foldPart(f *folder, s State) error {
	f.pages, f.base = db.pages, db.base
	return db.update(func(tx *bbolt.Tx) error { return f.fill(tx, s) })
}

// update runs a bbolt transaction and checks the pages after it.
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
	// bbolt can spread damage: its pages are checked before they are read.
	free, err := checkFile(db.file)
	if err != nil {
		return corrupt(db.path, err)
	}
	db.pages = free.mapped(db.bolt, db.mapped)
	return nil
}

var errFull = errors.New("index has outgrown the address space set aside for it: reopen the store")

// folder merges a source into the leaves, one transaction at a time.
type folder struct {
	source  *memorySource
	late    func() *memorySource // follows the source in the last transaction; may be nil
	changed map[string]bool      // keys of the source whose value differs from the existing one: they are written in the last transaction
	limits  limits
	done    bool
	yield   func() // called for each leaf if not nil
	base    *base  // with the sealed table

	// Of one transaction:
	pages  *pages // after the previous transaction
	leaves *bbolt.Bucket
	bytes  int // written
}

// fill merges as much as fits into one transaction. At the end it saves the state.
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

// finish merges entries that must not be written before the state, and saves the
// state.
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
	return s.save(tx, f.base.file.sealing)
}

// leaf merges the next entries of the source into the leaf that covers the first of
// them.
func (f *folder) leaf(key []byte) error {
	if f.yield != nil {
		f.yield()
	}
	c := f.leaves.Cursor()
	old, err := seekLeaf(c, f.pages, key)
	if err != nil {
		return err
	}
	// If keys are out of order, bbolt would add a second leaf beside the old one.
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

// merge returns in order the entries of the leaf and those of the source in its range,
// and their approximate size.
func (f *folder) merge(old leaf) (merged []Entry, size int, err error) {
	source := f.source
	var last []byte
	add := func(e Entry) {
		size += entrySize(last, e.Key, e.Value)
		merged, last = append(merged, e), e.Key
	}
	kept, err := old.list(old.low, nil)
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
			was := kept[0]
			if kept = kept[1:]; f.changed != nil && (was.Value == nil || !bytes.Equal(was.Value, e.Value)) {
				f.changed[string(e.Key)] = true
				e = was
			}
			if f.changed != nil || e.Value != nil {
				add(e)
				source.advance()
				continue
			}
		}
		write, err := f.overTable(e)
		if err != nil {
			return nil, 0, err
		}
		if write {
			add(e)
		}
		source.advance()
	}
}

// overTable reports whether a leaf needs an entry that it does not have. In the first transactions
// of a fold this is not yet so if the sealed table has another value.
func (f *folder) overTable(e Entry) (bool, error) {
	if f.base.file.table == nil {
		return e.Value != nil, nil
	}
	if e.Value != nil && f.changed == nil {
		return true, nil
	}
	value, ok, err := f.base.sealed(e.Key)
	if err != nil {
		return false, err
	}
	if e.Value == nil {
		return ok, nil
	}
	if ok && !bytes.Equal(value, e.Value) {
		f.changed[string(e.Key)] = true
	}
	return !ok, nil
}

// write replaces a leaf by as many leaves of similar size as the entries need. An
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
