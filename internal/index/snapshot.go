package index

import (
	"bytes"
	"iter"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/memtable"
)

// Snapshot is the state of the index after one commit. It is safe for concurrent
// use and must be closed.
type Snapshot struct {
	view   *view
	closed atomic.Bool
}

// Snapshot returns the latest state. It does not wait for I/O. A snapshot of a
// closed index is closed.
func (db *DB) Snapshot() *Snapshot {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	if db.closed {
		s := &Snapshot{view: &view{state: db.state}}
		s.closed.Store(true)
		return s
	}
	if db.shared == nil {
		v := &view{state: db.state, memory: []memtable.Moment{db.active.Seal()}}
		if db.frozen != nil {
			v.memory = append(v.memory, db.frozen.frozen)
		}
		if db.base != nil && db.base.retain() {
			v.base = db.base
		}
		v.refs.Store(1)
		db.shared = v
	}
	db.shared.refs.Add(1)
	return &Snapshot{view: db.shared}
}

// State returns the state of the snapshot.
func (s *Snapshot) State() State { return s.view.state }

// Close releases the snapshot. It may be called twice.
func (s *Snapshot) Close() {
	if !s.closed.Swap(true) {
		s.view.release()
	}
}

// retainBase keeps the base open until it is released, unless it is nil.
func (s *Snapshot) retainBase() (*base, error) {
	b := s.view.base
	if s.closed.Load() || b != nil && !b.retain() {
		return nil, errClosed
	}
	return b, nil
}

// Get returns a key's value. The caller must not change it.
func (s *Snapshot) Get(key []byte) (value []byte, ok bool, err error) {
	b, err := s.retainBase()
	if err != nil {
		return nil, false, err
	}
	if b != nil {
		defer b.release()
	}
	for _, m := range s.view.memory {
		if value, found := m.Get(key); found {
			return value, value != nil, nil
		}
	}
	if b == nil {
		return nil, false, nil
	}
	return b.get(key)
}

// Scan yields the entries with from <= key < to in order; a nil to has no end.
func (s *Snapshot) Scan(from, to []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for c := s.Cursor(from, to); ; {
			e, ok, err := c.Next()
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !ok || !yield(e, nil) {
				return
			}
		}
	}
}

// Cursor reads entries in order and can skip some. It is not safe for concurrent
// use.
type Cursor struct {
	s  *Snapshot
	m  merge
	to []byte
}

// Cursor returns a cursor over the entries with from <= key < to; a nil to has no
// end.
func (s *Snapshot) Cursor(from, to []byte) *Cursor {
	if from == nil {
		from = []byte{}
	}
	c := &Cursor{s: s, to: to}
	if s.closed.Load() {
		return c
	}
	for _, m := range s.view.memory {
		c.m.layers = append(c.m.layers, newMemorySource(m, from))
	}
	if s.view.base != nil {
		c.m.layers = append(c.m.layers, &baseSource{snapshot: s, next: from, to: to})
	}
	return c
}

// Next returns the next entry; ok is false at the end.
func (c *Cursor) Next() (e Entry, ok bool, err error) {
	if c.m.layers == nil {
		return Entry{}, false, errClosed
	}
	for {
		e, ok, err := c.m.next()
		if err != nil || !ok || c.to != nil && bytes.Compare(e.Key, c.to) >= 0 {
			return Entry{}, false, err
		}
		if e.Value != nil {
			return e, true, nil
		}
	}
}

// Skip skips the entries before a key.
func (c *Cursor) Skip(key []byte) {
	for _, l := range c.m.layers {
		l.skipTo(key)
	}
}

// Last returns the entry with the greatest key in from <= key < to; a nil to has
// no end.
func (s *Snapshot) Last(from, to []byte) (Entry, bool, error) {
	b, err := s.retainBase()
	if err != nil {
		return Entry{}, false, err
	}
	if b != nil {
		defer b.release()
	}
	inBase, has, err := lastInBase(b, from, to)
	for err == nil {
		// Each round finds the last entry before to, which may be a deletion. Then the next round ends before that.
		last, ok := inBase, has
		for _, m := range slices.Backward(s.view.memory) { // the newest counts
			key, value, found := m.Last(to)
			if found && bytes.Compare(key, from) >= 0 && (!ok || bytes.Compare(key, last.Key) >= 0) {
				last, ok = Entry{Key: key, Value: value}, true
			}
		}
		if !ok || last.Value != nil {
			return last, ok, nil
		}
		if to = last.Key; has && bytes.Equal(inBase.Key, to) {
			inBase, has, err = lastInBase(b, from, to)
		}
	}
	return Entry{}, false, err
}

func lastInBase(b *base, from, to []byte) (Entry, bool, error) {
	if b == nil {
		return Entry{}, false, nil
	}
	return b.last(from, to)
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
	c := Cursor{s: s, to: to, m: merge{layers: []entryIterator{&baseSource{snapshot: s, next: from, to: to}}}}
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

// baseSource reads bbolt leaf by leaf, so that it occupies no transaction.
type baseSource struct {
	snapshot *Snapshot
	entries  []Entry
	next, to []byte // the range of the next ones; a nil next is the end, a nil to has none
	pages    int    // read so far
}

func (s *baseSource) peek() (Entry, bool, error) {
	for len(s.entries) == 0 {
		if s.next == nil {
			return Entry{}, false, nil
		}
		b, err := s.snapshot.retainBase()
		if err != nil {
			return Entry{}, false, err
		}
		s.entries, s.next, err = b.page(s.next, s.to, min(minPage<<min(s.pages, 16), maxPage))
		s.pages++
		b.release()
		if err != nil {
			return Entry{}, false, err
		}
	}
	return s.entries[0], true, nil
}

func (s *baseSource) advance() { s.entries = s.entries[1:] }

func (s *baseSource) skipTo(key []byte) {
	n := sort.Search(len(s.entries), func(i int) bool { return bytes.Compare(s.entries[i].Key, key) >= 0 })
	s.entries = s.entries[n:]
	if len(s.entries) == 0 && s.next != nil && bytes.Compare(s.next, key) < 0 {
		s.next = bytes.Clone(key)
	}
}

// Get returns the latest value of a key. The caller must not change it.
func (db *DB) Get(key []byte) (value []byte, ok bool, err error) {
	db.Settle()
	db.mu.RLock()
	if db.closed {
		db.mu.RUnlock()
		return nil, false, errClosed
	}
	value, found := db.active.Latest().Get(key)
	if !found && db.frozen != nil {
		value, found = db.frozen.frozen.Get(key)
	}
	if found || db.base == nil {
		db.mu.RUnlock()
		return value, value != nil, nil
	}
	b := db.base
	b.retain() // it cannot be closed while it is current
	db.mu.RUnlock()
	defer b.release()
	return b.get(key)
}
