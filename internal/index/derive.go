package index

import (
	"bytes"
	"iter"

	"github.com/lineage-store/lineage/internal/memtable"
)

// Folding is the input of a running fold, for Options.Derive.
type Folding struct {
	base    *base  // of the last fold; nil before the first
	yield   func() // may be nil
	overlay *overlay
}

// Changed yields the entries under a prefix that the fold writes, in order. A nil value is a
// deletion. Keys and values stay valid until the fold ends.
func (f *Folding) Changed(prefix []byte) iter.Seq[Entry] {
	return changed([]memtable.Moment{f.overlay.frozen}, prefix)
}

// Before returns the value of a key as of the last fold.
func (f *Folding) Before(key []byte) (value []byte, ok bool, err error) {
	if f.yield != nil {
		f.yield()
	}
	return f.base.get(key)
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
