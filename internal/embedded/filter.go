package embedded

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// filter is a Bloom filter of keys: fingerprints of content and ids of contexts. It can tell without a lookup that
// the store lacks a key. The bits of a key are in two words of one cache line, so a query costs one memory access. It
// is safe for concurrent use.
type filter struct {
	lines []filterLine
	room  int64 // keys that can be added before the rate of false positives is too high
}

type filterLine [8]atomic.Uint64

const (
	filterBitsPerKey = 20
	filterProbes     = 4 // in each word
	minFilterKeys    = 1 << 16
)

func newFilter(keys uint64) *filter {
	keys = max(keys, minFilterKeys)
	return &filter{lines: make([]filterLine, keys*filterBitsPerKey/(64*uint64(len(filterLine{})))+1), room: int64(keys)}
}

// locate returns the words of a key of 16 bytes and its bits in them. One half of an id
// is a counter, the other a time.
func (f *filter) locate(key []byte) (words [2]*atomic.Uint64, masks [2]uint64) {
	h := binary.LittleEndian.Uint64(key)
	h = (h^h>>32)*0x9e3779b97f4a7c15 ^ binary.LittleEndian.Uint64(key[8:]) // both halves vary in the same bytes
	h = (h ^ h>>32) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>29) * 0x94d049bb133111eb
	h ^= h >> 32
	at, _ := bits.Mul64(h, uint64(len(f.lines)))
	line := &f.lines[at]
	h *= 0x9e3779b97f4a7c15 // so that the remaining bits do not depend on the cache line
	first := h >> 61
	words = [2]*atomic.Uint64{&line[first], &line[(first+1+h>>56&31%7)&7]}
	for i := range 2 * filterProbes {
		masks[i&1] |= 1 << (h >> (6 * uint(i)) & 63)
	}
	return words, masks
}

func (f *filter) add(key []byte) {
	words, masks := f.locate(key)
	for i, w := range words {
		if w.Load()&masks[i] != masks[i] {
			w.Or(masks[i])
		}
	}
}

func (f *filter) has(key []byte) bool {
	words, masks := f.locate(key)
	return words[0].Load()&masks[0] == masks[0] && words[1].Load()&masks[1] == masks[1]
}

// storeFilter is the filter of a store. It is filled in the background after the first
// write; until then every key may exist.
type storeFilter struct {
	ready atomic.Pointer[filter]
	next  atomic.Pointer[filter] // being filled
}

// lacks reports that the store does not have the key; false means unknown.
func (s *storeFilter) lacks(key []byte) bool {
	f := s.ready.Load()
	return f != nil && !f.has(key)
}

// contentKey expands the fingerprint of content to a filter key.
func contentKey(print uint32) (key [16]byte) {
	x := uint64(print) * 0x9e3779b97f4a7c15
	x = (x ^ x>>32) * 0xbf58476d1ce4e5b9
	binary.LittleEndian.PutUint64(key[:], x^x>>29)
	x = (x + 0x9e3779b97f4a7c15) * 0x94d049bb133111eb
	binary.LittleEndian.PutUint64(key[8:], x^x>>31)
	return key
}

// lacksContent is lacks for the start of a content id or chunk key.
func (s *storeFilter) lacksContent(start []byte) bool {
	k := contentKey(journal.Fingerprint(start))
	return s.lacks(k[:])
}

// addContents adds the content of a commit.
func (s *storeFilter) addContents(c *structure.Commit) {
	if s.next.Load() == nil && s.ready.Load() == nil {
		return
	}
	for _, r := range c.Records {
		if id, ok := judge.HashOf(r); ok {
			k := contentKey(journal.Fingerprint(id[:]))
			s.add(k[:])
		}
	}
}

// add adds a key that is being stored. The write lock is held.
func (s *storeFilter) add(key []byte) {
	// A finished filter becomes ready before it stops being next, so in this order it is always seen.
	for _, f := range []*filter{s.next.Load(), s.ready.Load()} {
		if f != nil {
			f.add(key)
			f.room--
		}
	}
}

// growFilter starts to build a filter if there is none or it is too small. The write
// lock is held.
func (e *Engine) growFilter() {
	if f := e.filter.ready.Load(); f != nil && f.room > 0 || e.filter.next.Load() != nil {
		return
	}
	keys := e.counts.Blocks + e.counts.Erased + e.counts.Chunks + e.counts.Contexts
	f := newFilter(2 * keys)
	f.room -= int64(keys)
	if keys == 0 {
		e.filter.ready.Store(f)
		return
	}
	if e.begin() != nil {
		return
	}
	// From here on, commits add their keys themselves.
	e.filter.next.Store(f)
	s := e.now()
	go func() {
		defer e.end()
		defer s.Close()
		if err := e.fillFilter(f, s); err == nil {
			e.filter.ready.Store(f)
		}
		e.filter.next.Store(nil) // without a filter, keys are looked up
	}()
}

// fillFilter adds the keys of a view.
func (e *Engine) fillFilter(f *filter, s view) error {
	for _, table := range []byte{keys.TableBlock, keys.TableChunk, keys.TableContext, keys.TableRemnant} {
		for entry, err := range s.Index.Scan(keys.Of(table), keys.PrefixEnd(keys.Of(table))) {
			if err == nil && e.closed.Load() {
				err = backend.ErrClosed
			}
			if err != nil {
				return err
			}
			k := [16]byte(entry.Key[1:])
			if table == keys.TableBlock || table == keys.TableChunk {
				k = contentKey(journal.Fingerprint(k[:]))
			}
			f.add(k[:])
		}
	}
	for print, err := range s.at.files.Fingerprints(s.at.packs.last) {
		if err == nil && e.closed.Load() {
			err = backend.ErrClosed
		}
		if err != nil {
			return err
		}
		k := contentKey(print)
		f.add(k[:])
	}
	return nil
}
