package index

import (
	"bytes"
	"iter"

	"github.com/lineage-store/lineage/internal/memtable"
)

// Folding is the input of a running fold, for Options.Derive.
type Folding struct {
	db      *DB
	overlay *overlay
}

// Changed yields the entries under a prefix that the fold writes, in order. A nil value is a
// deletion. Keys and values stay valid until the fold ends.
func (f *Folding) Changed(prefix []byte) iter.Seq[Entry] {
	return changed([]memtable.Moment{f.overlay.frozen}, prefix)
}

// Before returns the value of a key as of the last fold.
func (f *Folding) Before(key []byte) (value []byte, ok bool, err error) {
	if f.db.opt.Yield != nil {
		f.db.opt.Yield()
	}
	return f.db.base.get(key)
}

// After returns the value of a key after this fold.
func (f *Folding) After(key []byte) (value []byte, ok bool, err error) {
	if value, found := f.overlay.frozen.Get(key); found {
		return value, value != nil, nil
	}
	return f.Before(key)
}

// Put adds a derived entry; a nil value deletes the key. The last call for a key counts.
func (f *Folding) Put(key, value []byte) { f.overlay.Set(key, value) }

// changed yields the latest entries under a prefix in several moments, latest moment first.
// Deletions are yielded with nil values.
func changed(memory []memtable.Moment, prefix []byte) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		var m merge
		for _, moment := range memory {
			m.layers = append(m.layers, newMemorySource(moment, prefix))
		}
		for {
			e, ok, _ := m.next() // memory has no errors
			if !ok || !bytes.HasPrefix(e.Key, prefix) || !yield(e) {
				return
			}
		}
	}
}

// Changed yields the entries under a prefix that changed since the last fold, in order. A
// nil value is a deletion.
func (s *Snapshot) Changed(prefix []byte) iter.Seq[Entry] { return changed(s.view.memory, prefix) }

// FirstDerived returns the derived entry with the least key in from <= key < to, as of the
// last fold.
func (s *Snapshot) FirstDerived(from, to []byte) (Entry, bool, error) {
	if s.view.base == nil {
		return Entry{}, false, nil
	}
	c := Cursor{s: s, to: to, m: merge{layers: []source{&baseSource{snapshot: s, next: from, to: to}}}}
	return c.Next()
}

// LastDerived returns the derived entry with the greatest key in from <= key < to, as of the
// last fold.
func (s *Snapshot) LastDerived(from, to []byte) (Entry, bool, error) {
	b, err := s.retainBase()
	if err != nil {
		return Entry{}, false, err
	}
	if b != nil {
		defer b.release()
	}
	return lastInBase(b, from, to)
}
