package index

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/lineage-store/lineage/internal/memtable"
	"github.com/lineage-store/lineage/lineage/backend"
)

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
		err = db.removeSums()
	}
	if err == nil && db.opt.Derive != nil {
		err = db.opt.Derive(&Folding{base: db.base, yield: db.opt.Yield, overlay: o})
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
	case db.unread.Load() >= maxUnread, used*db.pages.size+come < db.limits.rewrite, time.Now().Before(db.rewriteAfter):
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
