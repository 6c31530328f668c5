package index

import (
	"bytes"

	"github.com/lineage-store/lineage/internal/memtable"
)

// entryIterator yields entries in key order.
type entryIterator interface {
	// peek returns the next entry; ok is false at the end.
	peek() (e Entry, ok bool, err error)
	advance()
	// skipTo skips the entries before a key.
	skipTo(key []byte)
}

// merge merges layers; if several have a key, the first one's entry counts.
type merge struct{ layers []entryIterator }

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

// memorySource reads a moment of an overlay.
type memorySource struct {
	at   memtable.Cursor
	keep func(Entry) bool // nil keeps all
}

func newMemorySource(m memtable.Moment, from []byte) *memorySource {
	return &memorySource{at: m.Seek(from)}
}

// only skips the entries for which keep returns false.
func (s *memorySource) only(keep func(Entry) bool) *memorySource {
	s.keep = keep
	s.pass()
	return s
}

// pass moves to the next entry that is kept.
func (s *memorySource) pass() {
	for s.at.Valid() && s.keep != nil && !s.keep(s.entry()) {
		s.at.Next()
	}
}

func (s *memorySource) entry() Entry { return Entry{Key: s.at.Key(), Value: s.at.Value()} }

func (s *memorySource) peek() (Entry, bool, error) {
	if !s.at.Valid() {
		return Entry{}, false, nil
	}
	return s.entry(), true, nil
}

func (s *memorySource) advance() {
	s.at.Next()
	s.pass()
}

func (s *memorySource) skipTo(key []byte) {
	const near = 4 // for so few entries, stepping is cheaper than seeking
	for range near {
		if !s.at.Valid() || bytes.Compare(s.at.Key(), key) >= 0 {
			return
		}
		s.advance()
	}
	if s.at.Valid() && bytes.Compare(s.at.Key(), key) < 0 {
		s.at.Seek(key)
		s.pass()
	}
}
