package index

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
	"github.com/lineage-store/lineage/lineage/backend"
)

// leafKey is the bbolt key of the leaf with a lower bound. bbolt accepts no empty
// keys, and the first leaf's bound is empty.
func leafKey(low []byte) []byte {
	return append(append(make([]byte, 0, 1+len(low)), 'L'), low...)
}

// base is the state of bbolt after a checkpoint. A bbolt transaction serves one
// goroutine at a time, so a base has several and lends their cursors for short
// reads: a reader waits only for other readers, never for a writer.
type base struct {
	file    *file
	pages   *pages
	cursors chan *bbolt.Cursor
	refs    atomic.Int64
	extents [][]byte // of the sealed table, where the file is mapped
}

func openBase(f *file, p *pages) (*base, error) {
	n := max(4, 2*runtime.GOMAXPROCS(0))
	b := &base{file: f, pages: p, cursors: make(chan *bbolt.Cursor, n)}
	b.refs.Store(1)
	f.refs.Add(1)
	for range n {
		if err := b.addCursor(f.bolt); err != nil {
			b.release()
			return nil, fmt.Errorf("read index: %w", err)
		}
	}
	if f.table != nil {
		if err := b.read(func(c *bbolt.Cursor) error { return b.findExtents(c.Bucket().Tx()) }); err != nil {
			b.release()
			return nil, err
		}
	}
	return b, nil
}

func (b *base) addCursor(db *bbolt.DB) error {
	tx, err := db.Begin(false)
	if err != nil {
		return err
	}
	err = guard(func() error {
		b.cursors <- tx.Bucket(leavesBucket).Cursor()
		return nil
	})
	if err != nil {
		_ = tx.Rollback()
	}
	return err
}

// retain keeps the base open until release; it returns false if it is closed
// already.
func (b *base) retain() bool {
	for n := b.refs.Load(); n > 0; n = b.refs.Load() {
		if b.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (b *base) release() {
	if b.refs.Add(-1) > 0 {
		return
	}
	for {
		select {
		case c := <-b.cursors:
			_ = c.Bucket().Tx().Rollback() // of a read: fails only when repeated
		default:
			b.file.release()
			return
		}
	}
}

var errPage = errors.New("damaged page")

// guard calls fn, which reads pages that may be damaged, and converts panics and
// memory faults of bbolt to errors.
func guard(fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(old)
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errPage, p)
		}
	}()
	return fn()
}

// read lends a cursor over the leaves to fn, whose errors describe damage. It is
// called between retain and release.
func (b *base) read(fn func(c *bbolt.Cursor) error) error {
	c := <-b.cursors
	defer func() { b.cursors <- c }()
	if err := guard(func() error { return fn(c) }); err != nil {
		return corrupt(b.file.path, err)
	}
	return nil
}

func corrupt(path string, what error) error {
	return &backend.CorruptError{File: path, What: what.Error() + "; to repair: " + backend.RebuildIndex}
}

// seekLeaf returns the leaf that covers the key; there always is one. Its memory
// belongs to the transaction.
func seekLeaf(c *bbolt.Cursor, p *pages, key []byte) (leaf, error) {
	var buf [80]byte
	want := append(append(buf[:0], 'L'), key...)
	k, v := c.Seek(want)
	switch {
	case k == nil:
		k, v = c.Last()
	case !bytes.Equal(k, want):
		k, v = c.Prev()
	}
	l, err := readLeaf(p, k, v)
	if err == nil && !l.covers(key) {
		err = errBounds
	}
	return l, err
}

// readLeaf decodes the leaf at a cursor.
func readLeaf(p *pages, k, v []byte) (leaf, error) {
	if len(k) == 0 {
		return leaf{}, errBounds
	}
	if !p.hold(k) || !p.hold(v) {
		return leaf{}, errStale
	}
	return decodeLeaf(k[1:], v)
}

// get returns a copy of a key's value.
func (b *base) get(key []byte) (value []byte, ok bool, err error) {
	err = b.read(func(c *bbolt.Cursor) error {
		l, err := seekLeaf(c, b.pages, key)
		if err != nil {
			return err
		}
		v, known, err := l.get(key)
		if err != nil || known || b.file.table == nil {
			value, ok = bytes.Clone(v), v != nil
			return err
		}
		value, ok, err = b.table().Get(key)
		return err
	})
	return value, ok, err
}

// page returns the next entries with from <= key < to, and the key from which others follow (nil at the end), at most limit
// of the sealed table. A nil to has no end. The caller owns the memory.
func (b *base) page(from, to []byte, limit int) (entries []Entry, next []byte, err error) {
	err = b.read(func(c *bbolt.Cursor) error {
		l, err := seekLeaf(c, b.pages, from)
		if err != nil {
			return err
		}
		next = bytes.Clone(l.high)
		end, last := next, to != nil && (next == nil || bytes.Compare(to, next) <= 0)
		if last {
			end, next = to, nil
		}
		if entries, err = l.list(from, end); err != nil || b.file.table == nil {
			return err
		}
		old, more, err := b.table().Page(from, end, limit)
		if more != nil {
			end, next = more, more
		}
		entries = over(entries, old, end)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return entries, next, nil
}

const (
	// minPage and maxPage limit what is read of the sealed table at once: most ranges are short,
	// and others are read to their ends.
	minPage = 4
	maxPage = 512
)

// over returns the entries of a leaf before a key over those of the sealed table.
func over(leaf []Entry, table []sealed.Entry, end []byte) []Entry {
	merged := make([]Entry, 0, len(leaf)+len(table))
	for len(leaf)+len(table) > 0 {
		order := 1
		if len(table) == 0 {
			order = -1
		} else if len(leaf) > 0 {
			order = bytes.Compare(leaf[0].Key, table[0].Key)
		}
		if order > 0 {
			merged, table = append(merged, Entry(table[0])), table[1:]
			continue
		}
		e := leaf[0]
		if end != nil && bytes.Compare(e.Key, end) >= 0 {
			break
		}
		if leaf = leaf[1:]; order == 0 {
			table = table[1:]
		}
		if e.Value != nil {
			merged = append(merged, e)
		}
	}
	return merged
}

// last returns a copy of the entry with the greatest key in from <= key < to; a nil to has no end.
func (b *base) last(from, to []byte) (last Entry, ok bool, err error) {
	for {
		last, ok, err := b.lastInLeaves(from, to)
		if err != nil || b.file.table == nil {
			return last, ok && last.Value != nil, err
		}
		var old sealed.Entry
		has := false
		err = b.read(func(*bbolt.Cursor) (err error) {
			old, has, err = b.table().Last(from, to)
			return err
		})
		switch {
		case err != nil:
			return Entry{}, false, err
		case has && (!ok || bytes.Compare(old.Key, last.Key) > 0):
			return Entry(old), true, nil
		case !ok || last.Value != nil:
			return last, ok, nil
		}
		to = last.Key // it is deleted
	}
}

// lastInLeaves is last for the leaves. The value of a deleted key is nil.
func (b *base) lastInLeaves(from, to []byte) (last Entry, ok bool, err error) {
	err = b.read(func(c *bbolt.Cursor) error {
		l, err := b.lastLeaf(c, to)
		if err != nil {
			return err
		}
		for {
			e, found, err := l.before(to)
			if err != nil {
				return err
			}
			if found && bytes.Compare(e.Key, from) >= 0 {
				last, ok = e, true
			}
			if found || bytes.Compare(l.low, from) <= 0 {
				return nil
			}
			if l, err = b.leafBefore(c, l); err != nil {
				return err
			}
		}
	})
	return last, ok, err
}

// lastLeaf returns the leaf that covers the key, or the last leaf for nil.
func (b *base) lastLeaf(c *bbolt.Cursor, key []byte) (leaf, error) {
	if key != nil {
		return seekLeaf(c, b.pages, key)
	}
	k, v := c.Last()
	l, err := readLeaf(b.pages, k, v)
	if err == nil && l.high != nil {
		err = errBounds
	}
	return l, err
}

// leafBefore moves the cursor to the leaf before its current one.
func (b *base) leafBefore(c *bbolt.Cursor, l leaf) (leaf, error) {
	k, v := c.Prev()
	before, err := readLeaf(b.pages, k, v)
	if err == nil && !bytes.Equal(before.high, l.low) {
		err = errBounds
	}
	return before, err
}

// openTable opens the sealed table of a file.
func (b *base) openTable(shape sealed.Shape, s *sealing) error {
	if s == nil {
		return nil
	}
	return b.read(func(c *bbolt.Cursor) error {
		v := c.Bucket().Tx().Bucket(sealedBucket).Get(directoryKey)
		if !b.pages.hold(v) {
			return errStale
		}
		table, err := sealed.Open(shape, v, s.sum)
		if err != nil {
			return err
		}
		b.file.table, b.file.sealing = table, s
		return b.findExtents(c.Bucket().Tx())
	})
}

// findExtents finds the extents of the sealed table. They stay where they are as long as the base is
// open.
func (b *base) findExtents(tx *bbolt.Tx) error {
	b.extents = nil
	return tx.Bucket(sealedBucket).ForEach(func(k, v []byte) error {
		if bytes.Equal(k, extentKey(uint32(len(b.extents)))) {
			b.extents = append(b.extents, v)
		}
		return nil
	})
}

// load returns bytes of the sealed table.
func (b *base) load(p sealed.Location) ([]byte, error) {
	if int(p.Extent) >= len(b.extents) {
		return nil, sealed.ErrDamaged
	}
	v, err := partOf(b.extents[p.Extent], p)
	if err == nil && !b.pages.hold(v) {
		err = errStale
	}
	return v, err
}

// partOf returns the bytes of a place in its extent.
func partOf(v []byte, p sealed.Location) ([]byte, error) {
	if p.Offset+p.Length > len(v) {
		return nil, sealed.ErrDamaged
	}
	return v[p.Offset:][:p.Length], nil
}

// table returns the sealed table, which there must be. It is used in read.
func (b *base) table() sealed.Reader { return sealed.Reader{Table: b.file.table, Load: b.load} }
