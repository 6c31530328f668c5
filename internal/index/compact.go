package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/vfs"
)

// compactSuffix ends the name of an index that is being written anew.
const compactSuffix = ".compact"

// Compact folds everything applied so far and writes the file anew, in as little
// room as its leaves need. What was deleted before is in no page of the new file.
// Readers go on, those of older states with the old file. Systems that cannot
// replace an open file get an error, and keep the file as it is.
func (db *DB) Compact(ctx context.Context) error {
	if err := db.claim(); err != nil {
		return err
	}
	fresh, err := db.writeAnew(ctx)
	db.mu.Lock()
	defer db.mu.Unlock()
	db.folding = false
	db.idle.Broadcast()
	if err != nil {
		return fmt.Errorf("compact index: %w", err)
	}
	base, kept := db.base, db.kept
	db.replaced.Add(1)
	kept.closed = db.replaced.Done
	db.bolt, db.file, db.mapped, db.pages, db.kept, db.base = fresh.bolt, fresh.file, fresh.mapped, fresh.pages, fresh.kept, fresh.base
	db.dropShared()
	base.release()
	kept.release()
	return nil
}

// file is a bbolt file that is read. One that another was put in the place of is
// closed after its last base: bbolt cannot close while reads end one by one.
type file struct {
	path   string
	bolt   *bbolt.DB
	refs   atomic.Int64 // its bases and, as long as it is in use, the index
	closed func()
}

func newFile(path string, bolt *bbolt.DB) *file {
	f := &file{path: path, bolt: bolt}
	f.refs.Store(1)
	return f
}

func (f *file) release() {
	if f.refs.Add(-1) == 0 {
		_ = f.bolt.Close() // it was only read
		f.closed()
	}
}

// writeAnew writes the leaves into another file and puts it in the place of the
// one in use.
func (db *DB) writeAnew(ctx context.Context) (_ *DB, err error) {
	tmp := db.path + compactSuffix
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fresh := &DB{path: tmp, opt: db.opt, limits: db.limits, mapped: db.mapped}
	defer func() {
		if err == nil {
			return
		}
		if fresh.base != nil {
			fresh.base.release()
		}
		if fresh.bolt != nil {
			_ = fresh.bolt.Close()
		}
		_ = os.Remove(tmp)
	}()
	if err := guard(func() error { return fresh.openBolt(nil) }); err != nil {
		return nil, err
	}
	fresh.base.release()
	fresh.base = nil
	if err := guard(func() error { return db.copyEntries(ctx, fresh) }); err != nil {
		return nil, err
	}
	free, err := checkFile(fresh.file)
	if err != nil {
		return nil, err
	}
	fresh.pages = free.mapped(fresh.bolt, fresh.mapped)
	fresh.kept = newFile(db.path, fresh.bolt)
	if fresh.base, err = openBase(fresh.kept, fresh.pages); err != nil {
		return nil, err
	}
	if err := removeSums(db.path); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, db.path); err != nil {
		return nil, err
	}
	if err := vfs.OS().SyncDir(filepath.Dir(db.path)); err != nil {
		db.opt.Log(fmt.Sprintf("compact index: %v", err)) // the old one would come back, as good
	}
	return fresh, nil
}

// copyEntries writes what the leaves hold, each of which is checked, into new
// leaves, and the state: the bounds of the old ones can be keys that were deleted.
func (db *DB) copyEntries(ctx context.Context, fresh *DB) error {
	from, err := db.bolt.Begin(false)
	if err != nil {
		return err
	}
	defer func() { _ = from.Rollback() }()
	w := leavesWriter{bolt: fresh.bolt, most: db.limits.bytes}
	defer w.rollback()
	low := []byte{}
	c := from.Bucket(leavesBucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l, err := readLeaf(db.pages, k, v)
		if err == nil && !bytes.Equal(l.low, low) {
			err = errBounds
		}
		if err != nil {
			return corrupt(db.path, err)
		}
		entries := l.cursor()
		for entries.next() {
			if err := w.add(entries.key, entries.value); err != nil {
				return err
			}
		}
		if entries.err != nil {
			return corrupt(db.path, entries.err)
		}
		low = bytes.Clone(l.high)
	}
	if low != nil {
		return corrupt(db.path, errBounds)
	}
	return w.finish(from.Bucket(metaBucket).Get(stateKey))
}

// leavesWriter writes entries that come in order into leaves, in transactions of a
// bounded size.
type leavesWriter struct {
	bolt  *bbolt.DB
	most  int // bytes of a transaction
	tx    *bbolt.Tx
	bytes int
	low   []byte
	leaf  leafWriter
}

func (w *leavesWriter) add(key, value []byte) error {
	if len(w.leaf.entries) >= leafTarget {
		if err := w.put(w.leaf.finish(w.low, key)); err != nil {
			return err
		}
		w.low = bytes.Clone(key)
	}
	w.leaf.add(key, value)
	return nil
}

func (w *leavesWriter) put(leaf []byte) (err error) {
	if w.tx == nil {
		if w.tx, err = w.bolt.Begin(true); err != nil {
			return err
		}
		w.bytes = 0
	}
	leaves := w.tx.Bucket(leavesBucket)
	leaves.FillPercent = 1
	if err := leaves.Put(leafKey(w.low), leaf); err != nil {
		return err
	}
	if w.bytes += len(leaf); w.bytes < w.most {
		return nil
	}
	return w.commit()
}

func (w *leavesWriter) commit() error {
	tx := w.tx
	w.tx = nil
	return tx.Commit()
}

// finish writes the last leaf and, with it or after it, the state.
func (w *leavesWriter) finish(state []byte) error {
	if err := w.put(w.leaf.finish(w.low, nil)); err != nil {
		return err
	}
	save := func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(stateKey, bytes.Clone(state)) }
	if w.tx == nil {
		return w.bolt.Update(save)
	}
	if err := save(w.tx); err != nil {
		return err
	}
	return w.commit()
}

func (w *leavesWriter) rollback() {
	if w.tx != nil {
		_ = w.tx.Rollback() // after an error that is told
	}
}
