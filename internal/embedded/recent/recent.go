// Package recent remembers what was used recently, to save lookups.
package recent

import (
	"encoding/binary"
	"sync"

	"github.com/lineage-store/lineage/structure"
)

// Table remembers values that can always be looked up. A key has two places in a table that grows
// up to a size, and may be forgotten for others. Ids that were created one after the other are side
// by side. See Shared for a table that several goroutines use.
type Table[K comparable, V any] struct {
	// Place returns a number for a key. Keys of one number are in each other's way.
	Place func(K) uint64
	sets  []set[K, V] // as many as a power of two
	count int         // how many new keys were put since the table has its size
}

// set has the two places of its keys, the one that was put last first.
type set[K comparable, V any] [2]struct {
	used  bool
	key   K
	value V
}

const (
	least = 1 << 7
	most  = 1 << 14
)

// ByID returns a table by ids.
func ByID[K ~[16]byte, V any]() Table[K, V] {
	return Table[K, V]{Place: func(id K) uint64 { return PlaceOfID(id) }}
}

// PlaceOfID is the place of an id: those made by structure.NewID end in a number
// that counts up.
func PlaceOfID(id [16]byte) uint64 {
	low := binary.BigEndian.Uint64(id[8:])
	return low ^ low>>40
}

// PlaceOfSpan is the place of a span: those of a run are side by side.
func PlaceOfSpan(r structure.SpanRef) uint64 { return PlaceOfID(r.Run) + r.Seq }

// Set remembers a value.
func (r *Table[K, V]) Set(k K, v V) {
	if len(r.sets) > 0 {
		if s := r.setOf(k); s[0].used && s[0].key == k {
			s[0].value = v
			return
		}
	}
	if len(r.sets) == 0 || r.count > len(r.sets) && 2*len(r.sets) < most {
		r.grow()
	}
	if _, known := r.Get(k); !known {
		r.count++
	}
	r.put(k, v)
}

func (r *Table[K, V]) setOf(k K) *set[K, V] {
	return &r.sets[r.Place(k)&uint64(len(r.sets)-1)]
}

func (r *Table[K, V]) put(k K, v V) {
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

// grow gives the table twice its size.
func (r *Table[K, V]) grow() {
	old := r.sets
	r.sets, r.count = make([]set[K, V], max(least, 2*len(old))), 0
	for i := range old {
		for k := len(old[i]) - 1; k >= 0; k-- {
			if e := &old[i][k]; e.used {
				r.put(e.key, e.value)
			}
		}
	}
}

// Get returns a value if it is remembered.
func (r *Table[K, V]) Get(k K) (v V, ok bool) {
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

// First is Get for the key of its place that was set or kept last.
func (r *Table[K, V]) First(k K) (v V, ok bool) {
	if len(r.sets) > 0 {
		if s := &r.setOf(k)[0]; s.used && s.key == k {
			return s.value, true
		}
	}
	return v, false
}

// Keep is Get for a key that is likely used again.
func (r *Table[K, V]) Keep(k K) (v V, ok bool) {
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
func (r *Table[K, V]) Forget(k K) {
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
func (r *Table[K, V]) Clear() { r.sets, r.count = nil, 0 }

// Shared is a table for many goroutines.
type Shared[K comparable, V any] struct {
	mu sync.Mutex
	is Table[K, V]
}

// NewShared returns a table by the places of keys.
func NewShared[K comparable, V any](place func(K) uint64) *Shared[K, V] {
	return &Shared[K, V]{is: Table[K, V]{Place: place}}
}

// Set is Table.Set.
func (r *Shared[K, V]) Set(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is.Set(k, v)
}

// Get is Table.Get.
func (r *Shared[K, V]) Get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is.Get(k)
}

// Clear is Table.Clear.
func (r *Shared[K, V]) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is.Clear()
}
