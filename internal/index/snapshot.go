package index

import (
	"bytes"
	"iter"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// view is the index as it stood after one commit.
type view struct {
	state  State
	active *btree.BTreeG[Entry]
	frozen *btree.BTreeG[Entry] // nil when nothing waits to be folded
	base   *base                // nil in a read-only index without a file
	refs   atomic.Int64
}

func (v *view) release() {
	if v.refs.Add(-1) == 0 && v.base != nil {
		v.base.release()
	}
}

// Snapshot is the index as it stood after one commit. It is safe for concurrent
// use and has to be closed.
type Snapshot struct {
	view   *view
	closed atomic.Bool
}

// Snapshot returns the latest state. It waits for no I/O. One of a closed index is
// closed.
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
		v := &view{state: db.state, active: db.active.tree.Copy()}
		if db.frozen != nil {
			v.frozen = db.frozen.tree
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

// State returns up to which commit the snapshot knows.
func (s *Snapshot) State() State { return s.view.state }

// Close releases the snapshot. It is safe to repeat.
func (s *Snapshot) Close() {
	if !s.closed.Swap(true) {
		s.view.release()
	}
}

// retainBase keeps the base from closing until it is released, which a nil one
// needs not be.
func (s *Snapshot) retainBase() (*base, error) {
	b := s.view.base
	if s.closed.Load() || b != nil && !b.retain() {
		return nil, errClosed
	}
	return b, nil
}

// Get returns a key's value, which must not be changed.
func (s *Snapshot) Get(key []byte) (value []byte, ok bool, err error) {
	b, err := s.retainBase()
	if err != nil {
		return nil, false, err
	}
	if b != nil {
		defer b.release()
	}
	e, found := s.view.active.Get(Entry{Key: key})
	if !found && s.view.frozen != nil {
		e, found = s.view.frozen.Get(Entry{Key: key})
	}
	if found || b == nil {
		return e.Value, e.Value != nil, nil
	}
	return b.get(key)
}

// Scan yields the entries with from <= key < to in order; a nil to has no end.
func (s *Snapshot) Scan(from, to []byte) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if s.closed.Load() {
			yield(Entry{}, errClosed)
			return
		}
		if from == nil {
			from = []byte{}
		}
		m := merge{layers: []source{newTreeSource(s.view.active, from)}}
		if s.view.frozen != nil {
			m.layers = append(m.layers, newTreeSource(s.view.frozen, from))
		}
		if s.view.base != nil {
			m.layers = append(m.layers, &baseSource{snapshot: s, next: from})
		}
		for {
			e, ok, err := m.next()
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !ok || to != nil && bytes.Compare(e.Key, to) >= 0 {
				return
			}
			if e.Value != nil && !yield(e, nil) {
				return
			}
		}
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
	// What the base says holds until a deletion takes it.
	inBase, has, err := lastInBase(b, from, to)
	for err == nil {
		last, ok := inBase, has
		for _, t := range []*btree.BTreeG[Entry]{s.view.frozen, s.view.active} { // the newest counts
			e, found := lastInTree(t, to)
			if found && bytes.Compare(e.Key, from) >= 0 && (!ok || bytes.Compare(e.Key, last.Key) >= 0) {
				last, ok = e, true
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

// lastInTree returns the entry with the greatest key less than to.
func lastInTree(t *btree.BTreeG[Entry], to []byte) (last Entry, ok bool) {
	if t == nil {
		return Entry{}, false
	}
	if to == nil {
		return t.Max()
	}
	t.Descend(Entry{Key: to}, func(e Entry) bool {
		if bytes.Equal(e.Key, to) {
			return true
		}
		last, ok = e, true
		return false
	})
	return last, ok
}

// source yields entries in order of their keys.
type source interface {
	// peek returns the entry that is next, ok false at the end.
	peek() (e Entry, ok bool, err error)
	advance()
}

// merge joins layers; where several have a key, the first one's entry counts.
type merge struct{ layers []source }

func (m *merge) next() (least Entry, ok bool, err error) {
	for _, l := range m.layers {
		e, has, err := l.peek()
		if err != nil {
			return Entry{}, false, err
		}
		if has && (!ok || bytes.Compare(e.Key, least.Key) < 0) {
			least, ok = e, true
		}
	}
	if !ok {
		return Entry{}, false, nil
	}
	for _, l := range m.layers {
		if e, has, _ := l.peek(); has && bytes.Equal(e.Key, least.Key) {
			l.advance()
		}
	}
	return least, true, nil
}

// treeSource reads an overlay that no longer changes.
type treeSource struct {
	iter btree.IterG[Entry]
	ok   bool
	keep func(Entry) bool // nil keeps all
}

func newTreeSource(t *btree.BTreeG[Entry], from []byte) *treeSource {
	s := &treeSource{iter: t.Iter()}
	s.ok = s.iter.Seek(Entry{Key: from})
	return s
}

// only leaves out the entries that keep is false for.
func (s *treeSource) only(keep func(Entry) bool) *treeSource {
	s.keep = keep
	s.skip()
	return s
}

func (s *treeSource) skip() {
	for s.ok && s.keep != nil && !s.keep(s.iter.Item()) {
		s.ok = s.iter.Next()
	}
}

func (s *treeSource) peek() (Entry, bool, error) {
	if !s.ok {
		return Entry{}, false, nil
	}
	return s.iter.Item(), true, nil
}

func (s *treeSource) advance() {
	s.ok = s.iter.Next()
	s.skip()
}

// baseSource reads bbolt a leaf at a time, so that it holds on to no transaction.
type baseSource struct {
	snapshot *Snapshot
	entries  []Entry
	next     []byte // where the next leaf begins; nil after the last
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
		s.entries, s.next, err = b.page(s.next)
		b.release()
		if err != nil {
			return Entry{}, false, err
		}
	}
	return s.entries[0], true, nil
}

func (s *baseSource) advance() { s.entries = s.entries[1:] }
