package index

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// folder merges an iterator into the leaves, one transaction at a time.
type folder struct {
	source  *memorySource
	late    func() *memorySource // follows the iterator in the last transaction; may be nil
	changed map[string]bool      // keys of the iterator whose value differs from the existing one: they are written in the last transaction
	limits  limits
	done    bool
	yield   func() // called for each leaf if not nil
	base    *base  // with the sealed table

	// Of one transaction:
	pages  *pages // after the previous transaction
	leaves *bbolt.Bucket
	bytes  int // written
}

// fill merges as much as fits into one transaction. At the end it saves the state.
func (f *folder) fill(tx *bbolt.Tx, s State) error {
	f.leaves, f.bytes = tx.Bucket(leavesBucket), 0
	f.leaves.FillPercent = 0.8
	for n := 0; n < f.limits.leaves && f.bytes < f.limits.bytes; n++ {
		first, ok, _ := f.source.peek()
		if !ok {
			return f.finish(tx, s)
		}
		if err := f.leaf(first.Key); err != nil {
			return err
		}
	}
	return nil
}

// finish merges entries that must not be written before the state, and saves the
// state.
func (f *folder) finish(tx *bbolt.Tx, s State) error {
	f.done = true
	if f.late != nil {
		f.source, f.changed = f.late(), nil
		for first, ok, _ := f.source.peek(); ok; first, ok, _ = f.source.peek() {
			if err := f.leaf(first.Key); err != nil {
				return err
			}
		}
	}
	return s.save(tx, f.base.file.sealing)
}

// leaf merges the next entries of the iterator into the leaf that covers the first of
// them.
func (f *folder) leaf(key []byte) error {
	if f.yield != nil {
		f.yield()
	}
	c := f.leaves.Cursor()
	old, err := seekLeaf(c, f.pages, key)
	if err != nil {
		return err
	}
	// If keys are out of order, bbolt would add a second leaf beside the old one.
	if k, _ := c.Seek(leafKey(old.low)); len(k) == 0 || !bytes.Equal(k[1:], old.low) {
		return errBounds
	}
	low, high := bytes.Clone(old.low), bytes.Clone(old.high)
	merged, size, err := f.merge(old)
	if err != nil {
		return err
	}
	return f.write(low, high, merged, size)
}

// merge returns in order the entries of the leaf and those of the iterator in its range,
// and their approximate size.
func (f *folder) merge(old leaf) (merged []Entry, size int, err error) {
	source := f.source
	var last []byte
	add := func(e Entry) {
		size += entrySize(last, e.Key, e.Value)
		merged, last = append(merged, e), e.Key
	}
	entries, err := old.list(old.low, nil)
	if err != nil {
		return nil, 0, err
	}
	for {
		e, ok, _ := source.peek()
		ok = ok && old.covers(e.Key)
		switch {
		case !ok && len(entries) == 0:
			return merged, size, nil
		case !ok || len(entries) > 0 && bytes.Compare(entries[0].Key, e.Key) < 0:
			add(entries[0])
			entries = entries[1:]
			continue
		case len(entries) > 0 && bytes.Equal(entries[0].Key, e.Key):
			was := entries[0]
			if entries = entries[1:]; f.changed != nil && (was.Value == nil || !bytes.Equal(was.Value, e.Value)) {
				f.changed[string(e.Key)] = true
				e = was
			}
			if f.changed != nil || e.Value != nil {
				add(e)
				source.advance()
				continue
			}
		}
		write, err := f.overTable(e)
		if err != nil {
			return nil, 0, err
		}
		if write {
			add(e)
		}
		source.advance()
	}
}

// overTable reports whether a leaf needs an entry that it does not have. In the first transactions
// of a fold this is not yet so if the sealed table has another value.
func (f *folder) overTable(e Entry) (bool, error) {
	if f.base.file.table == nil {
		return e.Value != nil, nil
	}
	if e.Value != nil && f.changed == nil {
		return true, nil
	}
	value, ok, err := f.base.sealed(e.Key)
	if err != nil {
		return false, err
	}
	if e.Value == nil {
		return ok, nil
	}
	if ok && !bytes.Equal(value, e.Value) {
		f.changed[string(e.Key)] = true
	}
	return !ok, nil
}

// write replaces a leaf by as many leaves of similar size as the entries need. An
// empty leaf stays: it keeps the range.
func (f *folder) write(low, high []byte, entries []Entry, size int) error {
	n := (size + leafTarget - 1) / leafTarget
	share := leafTarget
	if n > 0 {
		share = (size + n - 1) / n
	}
	var w leafWriter
	for i, e := range entries {
		if len(w.entries) >= share && i > 0 {
			if err := f.put(low, w.finish(low, e.Key)); err != nil {
				return err
			}
			low = e.Key
		}
		w.add(e.Key, e.Value)
	}
	return f.put(low, w.finish(low, high))
}

func (f *folder) put(low, leaf []byte) error {
	f.bytes += len(leaf)
	return f.leaves.Put(leafKey(low), leaf)
}
