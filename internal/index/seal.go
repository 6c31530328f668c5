package index

import (
	"bytes"
	"context"
	"encoding/binary"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
)

// The file may have a sealed table, in the bucket "sealed": the entries as of the last time that the
// file was compacted. Leaves have what changed since, and deletions of keys that the table has. A
// table is written once, into a new file, and copied when that is rewritten.

var (
	sealedBucket = []byte("sealed")
	directoryKey = []byte("directory")
)

// extentKey is the key of an extent of the sealed table.
func extentKey(n uint32) []byte { return binary.BigEndian.AppendUint32([]byte("e"), n) }

// sealing identifies the sealed table of a file.
type sealing struct{ sum uint32 } // of the directory

// append appends what the state says of the table; nil if there is none.
func (s *sealing) append(b []byte) []byte {
	if s == nil {
		return append(b, 0, 0, 0, 0, 0)
	}
	return binary.LittleEndian.AppendUint32(append(b, 1), s.sum)
}

func readSealing(b []byte) *sealing {
	if b[0] == 0 {
		return nil
	}
	return &sealing{sum: binary.LittleEndian.Uint32(b[1:])}
}

// noShape has no ids.
type noShape struct{}

func (noShape) Owners() []byte           { return nil }
func (noShape) Parts(byte) []sealed.Part { return nil }
func (noShape) Fields(dst []sealed.Field, _, _ []byte) []sealed.Field {
	return dst
}

// openTable opens the sealed table of a file.
func (b *base) openTable(shape sealed.Shape, is *sealing) error {
	if is == nil {
		return nil
	}
	return b.read(func(c *bbolt.Cursor) error {
		v := c.Bucket().Tx().Bucket(sealedBucket).Get(directoryKey)
		if !b.pages.hold(v) {
			return errStale
		}
		table, err := sealed.Open(shape, v, is.sum)
		if err != nil {
			return err
		}
		b.file.table, b.file.sealing = table, is
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
func (b *base) load(p sealed.Place) ([]byte, error) {
	if int(p.Extent) >= len(b.extents) {
		return nil, sealed.ErrDamaged
	}
	v, err := partOf(b.extents[p.Extent], p)
	if err == nil && !b.pages.hold(v) {
		err = errStale
	}
	return v, err
}

// table returns the sealed table, which there must be. It is used in read.
func (b *base) table() sealed.Reader { return sealed.Reader{Table: b.file.table, Load: b.load} }

// sealed returns the value of a key in the sealed table.
func (b *base) sealed(key []byte) (value []byte, ok bool, err error) {
	if b.file.table == nil {
		return nil, false, nil
	}
	err = b.read(func(*bbolt.Cursor) (err error) {
		value, ok, err = b.table().Get(key)
		return err
	})
	return value, ok, err
}

// has reports whether the sealed table has a key.
func (b *base) has(key []byte) (ok bool, err error) {
	if b.file.table == nil {
		return false, nil
	}
	err = b.read(func(*bbolt.Cursor) (err error) {
		ok, err = b.table().Has(key)
		return err
	})
	return ok, err
}

// each calls fn with the entries that start with one of the prefixes, or with all for none. They
// are valid during the call.
func (b *base) each(ctx context.Context, prefixes []byte, fn func(key, value []byte) error) error {
	from, to := []byte{}, []byte(nil)
	for n := 0; n == 0 || n < len(prefixes); n++ {
		if len(prefixes) > 0 {
			from, to = prefixes[n:n+1], []byte{prefixes[n] + 1}
		}
		for from != nil && (to == nil || bytes.Compare(from, to) < 0) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			entries, next, err := b.page(from, maxPage)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if to != nil && bytes.Compare(e.Key, to) >= 0 {
					break
				}
				if err := fn(e.Key, e.Value); err != nil {
					return err
				}
			}
			from = next
		}
	}
	return nil
}

// seal writes all entries but spare ones into the sealed table of a new file.
func (db *DB) seal(ctx context.Context, fresh *DB, s State, spare func(key, value []byte) bool) (*sealing, error) {
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
		if spare != nil && spare(key, value) {
			return nil
		}
		return w.Add(key, value)
	}); err != nil {
		return nil, err
	}
	directory, err := w.Finish()
	if err != nil {
		return nil, err
	}
	is := &sealing{sum: sealed.Sum(directory)}
	if err := to.put(sealedBucket, directoryKey, directory); err != nil {
		return nil, err
	}
	return is, to.finish(s, is)
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
func (w *batches) load(p sealed.Place) ([]byte, error) {
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

// extentAt returns bytes of the sealed table, which belong to the transaction.
func extentAt(tx *bbolt.Tx, p sealed.Place) ([]byte, error) {
	return partOf(tx.Bucket(sealedBucket).Get(extentKey(p.Extent)), p)
}

// partOf returns bytes of an extent.
func partOf(v []byte, p sealed.Place) ([]byte, error) {
	if p.Offset+p.Length > len(v) {
		return nil, sealed.ErrDamaged
	}
	return v[p.Offset:][:p.Length], nil
}

func (w *batches) commit() error {
	err := w.tx.Commit()
	w.tx = nil // not earlier, because bbolt may panic
	return err
}

// finish writes the state.
func (w *batches) finish(s State, is *sealing) error {
	if w.tx == nil {
		return w.bolt.Update(func(tx *bbolt.Tx) error { return s.save(tx, is) })
	}
	if err := s.save(w.tx, is); err != nil {
		return err
	}
	return w.commit()
}

func (w *batches) rollback() {
	if w.tx != nil {
		_ = w.tx.Rollback() // after an error that is reported
	}
}

// tablePages returns the approximate number of pages of the sealed table.
func (f *file) tablePages(size uint64) uint64 {
	if f.table == nil {
		return 0
	}
	stored, _ := f.table.Size()
	return uint64(stored) / size
}

// minLoose is the least size of leaves that IsLoose reports.
const minLoose = 8 << 20

// IsLoose reports whether the leaves have about as many entries as the sealed table, or more, or most of
// the file is free. Each entry is written about twice by an index that is compacted whenever this is so.
func (db *DB) IsLoose() bool {
	db.mu.RLock()
	defer db.mu.RUnlock()
	if db.base == nil || db.closed || !db.folds() || !canReplace {
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
