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

// filter tells for most keys that the store does not have them, without a lookup:
// the fingerprints of content, and the ids of contexts. It is a Bloom filter in which
// the bits of a key are in two words of one cache line, so that a key costs one access
// to memory. It may be added to and asked from many goroutines.
type filter struct {
	lines []filterLine
	room  int64 // keys that may still come before it tells too little
}

type filterLine [8]atomic.Uint64

const (
	filterBitsPerKey = 20
	filterProbes     = 4 // in each word
	leastFilterKeys  = 1 << 16
)

func newFilter(keys uint64) *filter {
	keys = max(keys, leastFilterKeys)
	return &filter{lines: make([]filterLine, keys*filterBitsPerKey/(64*uint64(len(filterLine{})))+1), room: int64(keys)}
}

// locate returns the words of a key of 16 bytes and its bits there. Ids count up in one
// half of the key, and have a time in the other.
func (f *filter) locate(key []byte) (words [2]*atomic.Uint64, masks [2]uint64) {
	h := binary.LittleEndian.Uint64(key)*0x9e3779b97f4a7c15 ^ binary.LittleEndian.Uint64(key[8:])
	h = (h ^ h>>32) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>29) * 0x94d049bb133111eb
	h ^= h >> 32
	at, _ := bits.Mul64(h, uint64(len(f.lines)))
	line := &f.lines[at]
	h *= 0x9e3779b97f4a7c15 // what is left of it does not follow from the line
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

// storeFilter is the filter over a store. It is made when writing begins, in the
// background; until then it answers nothing.
type storeFilter struct {
	ready atomic.Pointer[filter]
	next  atomic.Pointer[filter] // being made
}

// lacks reports that the store certainly does not have the key.
func (s *storeFilter) lacks(key []byte) bool {
	f := s.ready.Load()
	return f != nil && !f.has(key)
}

// contentKey spreads the fingerprint that content is known by, also in packs.
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

// addContents notes the content that a commit brings.
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

// add notes a key that is being stored. The lock on writing is held.
func (s *storeFilter) add(key []byte) {
	// A filter that is just done becomes ready before it stops being next, so in
	// this order it is not missed.
	for _, f := range []*filter{s.next.Load(), s.ready.Load()} {
		if f != nil {
			f.add(key)
			f.room--
		}
	}
}

// growFilter begins to make a filter if there is none or it has become too small.
// The lock on writing is held.
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
	// What is stored from here on is added by those who store it.
	e.filter.next.Store(f)
	s := e.now()
	go func() {
		defer e.end()
		defer s.Close()
		if err := e.fillFilter(f, s); err == nil {
			e.filter.ready.Store(f)
		}
		e.filter.next.Store(nil) // without one, lookups go on
	}()
}

// fillFilter adds the keys that a snapshot has.
func (e *Engine) fillFilter(f *filter, s view) error {
	for _, table := range []byte{keys.TableBlock, keys.TableChunk, keys.TableContext} {
		for entry, err := range s.Index.Scan(keys.Of(table), keys.PrefixEnd(keys.Of(table))) {
			if err == nil && e.closed.Load() {
				err = backend.ErrClosed
			}
			if err != nil {
				return err
			}
			k := [16]byte(entry.Key[1:])
			if table != keys.TableContext {
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
