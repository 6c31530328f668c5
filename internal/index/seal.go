package index

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
)

// seal writes what keep returns of all entries into the sealed table of a new file.
func (db *DB) seal(ctx context.Context, fresh *DB, s State, keep func(key, value []byte) []byte) (*sealing, error) {
	to := batches{bolt: fresh.bolt, maxBytes: db.limits.bytes}
	defer to.rollback()
	w := sealed.NewWriter(db.opt.Shape, func(n uint32, b []byte) error {
		return to.put(sealedBucket, extentKey(n), bytes.Clone(b))
	}, to.load)
	n := 0
	yield := func() {
		if n++; n%16 == 0 && db.opt.Yield != nil {
			db.opt.Yield()
		}
	}
	if err := db.base.each(ctx, db.opt.Shape.Owners(), func(key, _ []byte) error {
		yield()
		return w.Define(key)
	}); err != nil {
		return nil, err
	}
	if err := db.base.each(ctx, nil, func(key, value []byte) error {
		yield()
		if keep != nil {
			if value = keep(key, value); value == nil {
				return nil
			}
		}
		return w.Add(key, value)
	}); err != nil {
		return nil, err
	}
	directory, err := w.Finish()
	if err != nil {
		return nil, err
	}
	table := &sealing{sum: sealed.Sum(directory)}
	if err := to.put(sealedBucket, directoryKey, directory); err != nil {
		return nil, err
	}
	return table, to.finish(s, table)
}

// copyTable copies the sealed table into a new file.
func (db *DB) copyTable(ctx context.Context, from *bbolt.Tx, to *batches) error {
	if db.kept.sealing == nil {
		return nil
	}
	return from.Bucket(sealedBucket).ForEach(func(k, v []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !db.pages.hold(k) || !db.pages.hold(v) {
			return corrupt(db.path, errStale)
		}
		return to.put(sealedBucket, bytes.Clone(k), bytes.Clone(v))
	})
}

// batches writes to bbolt in transactions of limited size.
type batches struct {
	bolt     *bbolt.DB
	maxBytes int // of a transaction
	tx       *bbolt.Tx
	bytes    int
}

// put puts a value, whose memory it keeps.
func (w *batches) put(bucket, key, value []byte) error {
	if err := w.begin(); err != nil {
		return err
	}
	b := w.tx.Bucket(bucket)
	b.FillPercent = 1
	if err := b.Put(key, value); err != nil {
		return err
	}
	if w.bytes += len(value); w.bytes < w.maxBytes {
		return nil
	}
	return w.commit()
}

// load returns bytes of the sealed table, valid until the next put.
func (w *batches) load(p sealed.Location) ([]byte, error) {
	if err := w.begin(); err != nil {
		return nil, err
	}
	return extentAt(w.tx, p)
}

// begin begins a transaction unless there is one.
func (w *batches) begin() (err error) {
	if w.tx == nil {
		w.tx, err = w.bolt.Begin(true)
		w.bytes = 0
	}
	return err
}

func (w *batches) commit() error {
	err := w.tx.Commit()
	w.tx = nil // not earlier, because bbolt may panic
	return err
}

// finish writes the state.
func (w *batches) finish(s State, table *sealing) error {
	if w.tx == nil {
		return w.bolt.Update(func(tx *bbolt.Tx) error { return s.save(tx, table) })
	}
	if err := s.save(w.tx, table); err != nil {
		return err
	}
	return w.commit()
}

func (w *batches) rollback() {
	if w.tx != nil {
		_ = w.tx.Rollback() // after an error that is reported
	}
}

// IsLoose reports whether the leaves have about as many entries as the sealed table, or more, or most of
// the file is free. Each entry is written about twice by an index that is compacted whenever this is so.
func (db *DB) IsLoose() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.base == nil || db.closed || !db.folds() {
		return false
	}
	used := int64(db.base.pages.used() * db.base.pages.size)
	if int64(db.base.pages.inUse())-used >= max(db.limits.loose, used) {
		return true
	}
	loose, whole := used, int64(0)
	if table := db.base.file.table; table != nil {
		stored, size := table.Size()
		loose, whole = loose-stored, size
	}
	return loose >= max(db.limits.loose, 2*whole)
}
