package index

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replace switches to a rewritten file. The old one is closed after release, when its
// last reader is done. The caller holds mu.
func (db *DB) replace(fresh *DB) (release func()) {
	base := db.base
	holds := db.leave()
	db.bolt, db.file, db.pages, db.kept, db.base = fresh.bolt, fresh.file, fresh.pages, fresh.kept, fresh.base
	return func() {
		base.release()
		holds()
	}
}

// leave lets the current file be closed after release is called and its last base is
// released. replaced.Wait waits for that.
func (db *DB) leave() (release func()) {
	db.replaced.Add(1)
	db.unread.Add(1)
	replaced := db.kept
	replaced.closed = func(err error) {
		if replaced.aside != "" && err == nil {
			err = os.Remove(replaced.aside)
		}
		if err != nil {
			db.opt.Logger.Warn("replaced index is not closed", "err", err)
		}
		db.unread.Add(-1)
		db.replaced.Done()
	}
	return db.kept.release
}

// rewriteWith writes the sealed table, the leaves and the entries and state of later into
// a new file, which replaces the current one.
func (db *DB) rewriteWith(ctx context.Context, later *overlay) (*DB, error) {
	return db.rewrite(0, func(fresh *DB) (*sealing, error) { return db.kept.sealing, db.copyEntries(ctx, fresh, later) })
}

// rewrite replaces the file by one that fill writes, in pages of a size, or of that of the machine if it is 0.
func (db *DB) rewrite(pageSize int, fill func(fresh *DB) (*sealing, error)) (_ *DB, err error) {
	if err := db.held(); err != nil {
		return nil, err
	}
	tmp := db.path + compactSuffix
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	fresh := &DB{path: tmp, opt: db.opt, limits: db.limits, system: db.system, mapped: db.mapped, pageSize: pageSize, draft: true}
	defer func() {
		if err != nil {
			fresh.closeDraft()
			if db.held() == nil {
				_ = os.Remove(tmp)
			}
		}
	}()
	if err := guard(func() error { return fresh.openBolt(nil) }); err != nil {
		return nil, err
	}
	fresh.base.release()
	fresh.base = nil
	var table *sealing
	if err := guard(func() (err error) {
		table, err = fill(fresh)
		return err
	}); err != nil {
		return nil, err
	}
	if err := fresh.finishDraft(db.path, table); err != nil {
		return nil, err
	}
	if err := db.removeSums(); err != nil {
		return nil, err
	}
	if db.kept.aside, err = db.system.replace(tmp, db.path); err != nil {
		return nil, err
	}
	db.renamed = true
	return fresh, nil
}

// finishDraft makes a draft durable, and opens what was written for readers. It is going to be at path.
func (db *DB) finishDraft(path string, table *sealing) error {
	db.bolt.NoSync, db.bolt.NoGrowSync = false, false
	if err := db.bolt.Sync(); err != nil {
		return err
	}
	free, err := checkFile(db.file)
	if err != nil {
		return err
	}
	db.pages = free.mapped(db.bolt, db.mapped)
	db.kept = newFile(path, db.bolt)
	if db.base, err = openBase(db.kept, db.pages); err != nil {
		return err
	}
	return db.base.openTable(db.opt.Shape, table)
}

// closeDraft closes a draft that is given up.
func (db *DB) closeDraft() {
	if db.base != nil {
		db.base.release()
	}
	switch {
	case db.bolt != nil:
		_ = db.bolt.Close()
	case db.file != nil: // left open by a panic in bbolt
		_ = db.file.Close()
	}
}

// syncName makes the replacement of the file durable: otherwise the old file could
// reappear, without what was folded since.
func (db *DB) syncName() error {
	if !db.renamed {
		return nil
	}
	if err := db.syncDir(filepath.Dir(db.path)); err != nil {
		return err
	}
	db.renamed = false
	return nil
}

// copyEntries writes the checked entries of the leaves and those of later into new leaves, with the state of later and the
// sealed table. The bounds of the old leaves are dropped, since they may be deleted keys.
func (db *DB) copyEntries(ctx context.Context, fresh *DB, later *overlay) error {
	from, err := db.bolt.Begin(false)
	if err != nil {
		return err
	}
	defer func() { _ = from.Rollback() }()
	w := leavesWriter{batches: batches{bolt: fresh.bolt, maxBytes: db.limits.bytes}, yield: db.opt.Yield}
	defer w.rollback()
	if err := db.copyTable(ctx, from, &w.batches); err != nil {
		return err
	}
	m := merger{into: &w, newer: newMemorySource(later.Latest(), nil), sealed: db.base.has}
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
			if err := m.add(entries.key, entries.value); err != nil {
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
	if err := m.rest(nil); err != nil {
		return err
	}
	return w.end(later.state, db.kept.sealing)
}

// merger merges ordered entries with newer ones, which take precedence.
type merger struct {
	into   *leavesWriter
	newer  *memorySource
	sealed func(key []byte) (bool, error) // whether a deletion must be kept
}

func (m *merger) add(key, value []byte) error {
	if err := m.rest(key); err != nil {
		return err
	}
	if e, ok, _ := m.newer.peek(); ok && bytes.Equal(e.Key, key) {
		return nil
	}
	return m.into.add(key, value)
}

// rest writes the newer entries before the key, or all of them for nil.
func (m *merger) rest(to []byte) error {
	for e, ok, _ := m.newer.peek(); ok && (to == nil || bytes.Compare(e.Key, to) < 0); e, ok, _ = m.newer.peek() {
		keep, err := e.Value != nil, error(nil)
		if !keep {
			keep, err = m.sealed(e.Key)
		}
		if err == nil && keep {
			err = m.into.add(e.Key, e.Value)
		}
		if err != nil {
			return err
		}
		m.newer.advance()
	}
	return nil
}

// leavesWriter writes ordered entries into leaves, in transactions of limited size.
type leavesWriter struct {
	batches
	yield func() // called for each leaf if not nil
	low   []byte
	leaf  leafWriter
}

func (w *leavesWriter) add(key, value []byte) error {
	if !w.leaf.fits(w.low, key, value) {
		if err := w.write(w.leaf.finish(w.low, key)); err != nil {
			return err
		}
		w.low = bytes.Clone(key)
	}
	w.leaf.add(key, value)
	return nil
}

func (w *leavesWriter) write(leaf []byte) error {
	if w.yield != nil {
		w.yield()
	}
	return w.put(leavesBucket, leafKey(w.low), leaf)
}

// end writes the last leaf and then the state.
func (w *leavesWriter) end(s State, table *sealing) error {
	if err := w.write(w.leaf.finish(w.low, nil)); err != nil {
		return err
	}
	return w.finish(s, table)
}
