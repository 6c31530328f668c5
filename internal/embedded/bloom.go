package embedded

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
)

// bloomFilter is a Bloom filter of keys: fingerprints of content and ids of contexts. It can tell without a lookup that
// the store lacks a key. The bits of a key are in two words of one cache line, so a query costs one memory access. It
// is safe for concurrent use.
type bloomFilter struct {
	lines []filterLine
	room  int64 // keys that can be added before the rate of false positives is too high
}

type filterLine [8]atomic.Uint64

const (
	filterBitsPerKey = 20
	filterProbes     = 4 // in each word
	minFilterKeys    = 1 << 16
)

func newBloomFilter(keys uint64) *bloomFilter {
	keys = max(keys, minFilterKeys)
	return &bloomFilter{lines: make([]filterLine, keys*filterBitsPerKey/(64*uint64(len(filterLine{})))+1), room: int64(keys)}
}

// locate returns the words of a key of 16 bytes and its bits in them. One half of an id
// is a counter, the other a time.
func (f *bloomFilter) locate(key []byte) (words [2]*atomic.Uint64, masks [2]uint64) {
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

func (f *bloomFilter) add(key []byte) {
	words, masks := f.locate(key)
	for i, w := range words {
		if w.Load()&masks[i] != masks[i] {
			w.Or(masks[i])
		}
	}
}

func (f *bloomFilter) has(key []byte) bool {
	words, masks := f.locate(key)
	return words[0].Load()&masks[0] == masks[0] && words[1].Load()&masks[1] == masks[1]
}
