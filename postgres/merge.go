package postgres

import (
	"bytes"
	"iter"

	"github.com/lineage-store/lineage/internal/index"
)

// sorted iterates over entries in order. An entry without a value is a deletion.
type sorted interface {
	Valid() bool
	Key() []byte
	Value() []byte
	Next()
}

// list is a sorted list.
type list struct{ entries []index.Entry }

func (l *list) Valid() bool   { return len(l.entries) > 0 }
func (l *list) Key() []byte   { return l.entries[0].Key }
func (l *list) Value() []byte { return l.entries[0].Value }
func (l *list) Next()         { l.entries = l.entries[1:] }

// merged yields the entries of a range that ends at a key, with later ones that replace them.
func merged(earlier iter.Seq2[index.Entry, error], begin func() sorted, to []byte) iter.Seq2[index.Entry, error] {
	return func(yield func(index.Entry, error) bool) {
		later := begin()
		yieldLater := func(before []byte) bool { // those before a key; nil for no end
			for ; later.Valid() && (before == nil || bytes.Compare(later.Key(), before) < 0); later.Next() {
				if v := later.Value(); v != nil && !yield(index.Entry{Key: later.Key(), Value: v}, nil) {
					return false
				}
			}
			return true
		}
		for e, err := range earlier {
			if err != nil {
				yield(e, err)
				return
			}
			if !yieldLater(e.Key) {
				return
			}
			if later.Valid() && bytes.Equal(later.Key(), e.Key) {
				continue // the later one is yielded before the next entry
			}
			if !yield(e, nil) {
				return
			}
		}
		yieldLater(to)
	}
}
