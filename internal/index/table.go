package index

import (
	"context"

	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
)

// The file may have a sealed table, in the bucket "sealed": the entries as of the last time that the
// file was compacted. Leaves have what changed since, and deletions of keys that the table has. A
// table is written once, into a new file, and copied when that is rewritten.

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

func (noShape) Parts(byte) []sealed.KeyPart { return nil }

func (noShape) Uses() (first byte, kind int) { return 0, 0 }

func (noShape) Fields(dst []sealed.Field, _, _ []byte) []sealed.Field {
	return dst
}

// extentAt returns bytes of the sealed table, which belong to the transaction.
func extentAt(tx *bbolt.Tx, p sealed.Location) ([]byte, error) {
	return partOf(tx.Bucket(sealedBucket).Get(extentKey(p.Extent)), p)
}
