// Package recent caches recently used values.
package recent

import (
	"encoding/binary"
	"sync"

	"github.com/lineage-store/lineage/structure"
)

// Cache has values that can be looked up elsewhere. A key has two slots in a table that grows up to a limit, and
// other keys may evict it. Consecutive ids are in adjacent slots. Shared is a cache for several goroutines.
type Cache[K comparable, V any] struct {
	// Place returns a number for a key. Keys with the same number compete for slots.
	Place func(K) uint64
	sets  []set[K, V] // the length is a power of two
	count int         // new keys since the last growth
}

// set has two slots for its keys. The first one was set last.
type set[K comparable, V any] [2]struct {
	used  bool
	key   K
	value V
}

const (
	minSets = 1 << 7
	maxSets = 1 << 14
)

// ByID returns a cache with ids as keys.
func ByID[K ~[16]byte, V any]() Cache[K, V] {
	return Cache[K, V]{Place: func(id K) uint64 { return PlaceOfID(id) }}
}

// PlaceOfID returns the place of an id. Ids of structure.NewID end in a counter.
func PlaceOfID(id [16]byte) uint64 {
	low := binary.BigEndian.Uint64(id[8:])
	return low ^ low>>40
}

// PlaceOfSpan returns the place of a span. Spans of a run are adjacent.
func PlaceOfSpan(r structure.SpanRef) uint64 { return PlaceOfID(r.Run) + r.Seq }

// Set caches a value.
func (r *Cache[K, V]) Set(k K, v V) {
	if len(r.sets) > 0 {
		if s := r.setOf(k); s[0].used && s[0].key == k {
			s[0].value = v
			return
		}
	}
	if len(r.sets) == 0 || r.count > len(r.sets) && 2*len(r.sets) < maxSets {
		r.grow()
	}
	if _, known := r.Get(k); !known {
		r.count++
	}
	r.put(k, v)
}

func (r *Cache[K, V]) setOf(k K) *set[K, V] {
	return &r.sets[r.Place(k)&uint64(len(r.sets)-1)]
}

func (r *Cache[K, V]) put(k K, v V) {
	s := r.setOf(k)
	if s[0].used && s[0].key != k {
		s[1] = s[0]
	}
	s[0].used, s[0].key, s[0].value = true, k, v
	if s[1].used && s[1].key == k {
		s[1].used = false
		var none V
		s[1].value = none
	}
}

// grow doubles the size of the table.
func (r *Cache[K, V]) grow() {
	old := r.sets
	r.sets, r.count = make([]set[K, V], max(minSets, 2*len(old))), 0
	for i := range old {
		for k := len(old[i]) - 1; k >= 0; k-- {
			if e := &old[i][k]; e.used {
				r.put(e.key, e.value)
			}
		}
	}
}

// Get returns a value if it is cached.
func (r *Cache[K, V]) Get(k K) (v V, ok bool) {
	if len(r.sets) == 0 {
		return v, false
	}
	s := r.setOf(k)
	for i := range s {
		if e := &s[i]; e.used && e.key == k {
			return e.value, true
		}
	}
	return v, false
}

// First is Get for the first slot only.
func (r *Cache[K, V]) First(k K) (v V, ok bool) {
	if len(r.sets) > 0 {
		if s := &r.setOf(k)[0]; s.used && s.key == k {
			return s.value, true
		}
	}
	return v, false
}

// Keep is Get for a key that is likely to be used again.
func (r *Cache[K, V]) Keep(k K) (v V, ok bool) {
	if len(r.sets) == 0 {
		return v, false
	}
	s := r.setOf(k)
	if s[1].used && s[1].key == k {
		s[0], s[1] = s[1], s[0]
	}
	if s[0].used && s[0].key == k {
		v, ok = s[0].value, true
	}
	return v, ok
}

// Forget removes a key.
func (r *Cache[K, V]) Forget(k K) {
	if len(r.sets) == 0 {
		return
	}
	s := r.setOf(k)
	for i := range s {
		if s[i].used && s[i].key == k {
			var none V
			s[i].used, s[i].value = false, none
		}
	}
}

// Clear removes all keys.
func (r *Cache[K, V]) Clear() { r.sets, r.count = nil, 0 }

// Shared is a Cache for concurrent use.
type Shared[K comparable, V any] struct {
	mu    sync.Mutex
	table Cache[K, V]
}

// NewShared returns a cache with the given places of keys.
func NewShared[K comparable, V any](place func(K) uint64) *Shared[K, V] {
	return &Shared[K, V]{table: Cache[K, V]{Place: place}}
}

// Set is Table.Set.
func (r *Shared[K, V]) Set(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.Set(k, v)
}

// Get is Table.Get.
func (r *Shared[K, V]) Get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table.Get(k)
}

// Clear is Table.Clear.
func (r *Shared[K, V]) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.Clear()
}
