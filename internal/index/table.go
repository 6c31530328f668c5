package index

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
)

// The file may have a sealed table, in the bucket "sealed": the entries as of the last time that the
// file was compacted. Leaves have what changed since, and deletions of keys that the table has. A
// table is written once, into a new file, and copied when that is rewritten.

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
		for from != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			entries, next, err := b.page(from, to, maxPage)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := fn(e.Key, e.Value); err != nil {
					return err
				}
			}
			from = next
		}
	}
	return nil
}

// noShape has no ids.
type noShape struct{}

func (noShape) Owners() []byte { return nil }

func (noShape) Parts(byte) []sealed.Part { return nil }

func (noShape) Uses() (first byte, kind int) { return 0, 0 }

func (noShape) Fields(dst []sealed.Field, _, _ []byte) []sealed.Field {
	return dst
}

// extentAt returns bytes of the sealed table, which belong to the transaction.
func extentAt(tx *bbolt.Tx, p sealed.Place) ([]byte, error) {
	return partOf(tx.Bucket(sealedBucket).Get(extentKey(p.Extent)), p)
}

// partOf returns the bytes of a place in its extent.
func partOf(v []byte, p sealed.Place) ([]byte, error) {
	if p.Offset+p.Length > len(v) {
		return nil, sealed.ErrDamaged
	}
	return v[p.Offset:][:p.Length], nil
}
