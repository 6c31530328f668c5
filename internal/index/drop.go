package index

import (
	"bytes"
	"context"
	"fmt"

	"go.etcd.io/bbolt"
)

// Drop deletes entries from the file whose keys start with one of the prefixes and
// for which spare returns true. The caller finds them elsewhere, and has applied an
// entry that says so: Drop folds everything applied so far, so that this entry is in
// the file first. Then it deletes, in transactions of limited size. Readers of older
// states keep the entries.
func (db *DB) Drop(ctx context.Context, prefixes []byte, spare func(key, value []byte) bool) error {
	if err := db.claim(); err != nil {
		return err
	}
	next, err := db.drop(ctx, prefixes, spare)
	db.endFold(func() (release func()) {
		if next == nil {
			return nil
		}
		return db.rebase(next)
	})
	if err != nil {
		return fmt.Errorf("drop from index: %w", err)
	}
	return nil
}

// drop returns the base after its last transaction, or nil without one.
func (db *DB) drop(ctx context.Context, prefixes []byte, spare func(key, value []byte) bool) (next *base, err error) {
	if err := db.removeSums(); err != nil {
		return nil, err
	}
	changed := false
	for _, p := range prefixes {
		d := dropper{db: db, next: []byte{p}, to: []byte{p + 1}, spare: spare}
		for err == nil && d.next != nil {
			if err = ctx.Err(); err != nil {
				err = context.Cause(ctx)
				break
			}
			if err = db.update(d.pass); err == nil {
				changed = true
			}
		}
	}
	if !changed {
		return nil, err
	}
	next, openErr := openBase(db.kept, db.pages)
	if err == nil {
		err = openErr
	}
	return next, err
}

// dropper deletes from a range of keys, one transaction at a time.
type dropper struct {
	db       *DB
	next, to []byte // nil at the end
	spare    func(key, value []byte) bool
}

// pass rewrites the next leaves with entries to drop, as many as fit into one
// transaction. The remaining entries are merged into as few leaves as possible.
func (d *dropper) pass(tx *bbolt.Tx) error {
	f := folder{pages: d.db.pages, leaves: tx.Bucket(leavesBucket), base: d.db.base}
	f.leaves.FillPercent = 0.8
	for d.next != nil {
		b, err := d.batch(&f)
		if err != nil {
			return err
		}
		if !b.dropped {
			continue
		}
		for _, k := range b.old {
			if err := f.leaves.Delete(k); err != nil {
				return err
			}
		}
		return f.write(b.low, b.high, b.kept, b.size)
	}
	return nil
}

// dropped is consecutive leaves and their remaining entries.
type dropped struct {
	low, high []byte
	old       [][]byte // keys of the leaves
	kept      []Entry
	size      int // of kept, approximately
	dropped   bool
}

// batch reads the next leaves.
func (d *dropper) batch(f *folder) (b dropped, err error) {
	c := f.leaves.Cursor()
	l, err := seekLeaf(c, f.pages, d.next)
	if err != nil {
		return b, err
	}
	b.low = bytes.Clone(l.low)
	var last []byte
	for read := 0; ; {
		entries, err := l.list(l.low, nil)
		if err != nil {
			return b, err
		}
		b.old = append(b.old, leafKey(l.low))
		for _, e := range entries {
			if e.Value != nil && bytes.Compare(e.Key, d.next) >= 0 && bytes.Compare(e.Key, d.to) < 0 && d.spare(e.Key, e.Value) {
				b.dropped, e.Value = true, nil
				if hides, err := f.base.has(e.Key); err != nil {
					return b, err
				} else if !hides {
					continue
				}
			}
			b.size += entrySize(last, e.Key, e.Value)
			b.kept, last = append(b.kept, e), e.Key
		}
		b.high = bytes.Clone(l.high)
		end := b.high == nil || bytes.Compare(b.high, d.to) >= 0
		read += len(l.entries)
		if end || read >= d.db.limits.bytes || len(b.old) >= d.db.limits.leaves {
			if d.next = b.high; end {
				d.next = nil
			}
			return b, nil
		}
		k, v := c.Next()
		if l, err = readLeaf(f.pages, k, v); err != nil {
			return b, err
		}
		if !bytes.Equal(l.low, b.high) {
			return b, errBounds
		}
	}
}
