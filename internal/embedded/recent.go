package embedded

import (
	"encoding/binary"
	"sync"

	"github.com/lineage-store/lineage/structure"
)

// recent remembers what was used lately, to save lookups. What it holds can always
// be looked up, so it forgets things for others: a key has two places in a table
// that grows up to a size. Ids that were made one after the other stand side by
// side there. See sharedRecent for one that several goroutines use.
type recent[K comparable, V any] struct {
	place func(K) uint64
	sets  []recentSet[K, V] // as many as a power of two
	count int               // how many new keys were put since the table has its size
}

// recentSet has the two places of its keys, the one that was put last first.
type recentSet[K comparable, V any] [2]struct {
	used  bool
	key   K
	value V
}

const (
	leastRecent = 1 << 7
	mostRecent  = 1 << 14
)

// recentByID returns a recent for ids.
func recentByID[K ~[16]byte, V any]() recent[K, V] {
	return recent[K, V]{place: func(id K) uint64 { return placeOfID(id) }}
}

// placeOfID is the place of an id: those made by structure.NewID end in a number
// that counts up.
func placeOfID(id [16]byte) uint64 {
	low := binary.BigEndian.Uint64(id[8:])
	return low ^ low>>40
}

func placeOfSpan(r structure.SpanRef) uint64 { return placeOfID(r.Run) + r.Seq }

func (r *recent[K, V]) set(k K, v V) {
	if len(r.sets) > 0 {
		if s := r.setOf(k); s[0].used && s[0].key == k {
			s[0].value = v
			return
		}
	}
	if len(r.sets) == 0 || r.count > len(r.sets) && 2*len(r.sets) < mostRecent {
		r.grow()
	}
	if _, known := r.get(k); !known {
		r.count++
	}
	r.put(k, v)
}

func (r *recent[K, V]) setOf(k K) *recentSet[K, V] {
	return &r.sets[r.place(k)&uint64(len(r.sets)-1)]
}

func (r *recent[K, V]) put(k K, v V) {
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
func (r *recent[K, V]) grow() {
	old := r.sets
	r.sets, r.count = make([]recentSet[K, V], max(leastRecent, 2*len(old))), 0
	for i := range old {
		for k := len(old[i]) - 1; k >= 0; k-- {
			if e := &old[i][k]; e.used {
				r.put(e.key, e.value)
			}
		}
	}
}

func (r *recent[K, V]) get(k K) (v V, ok bool) {
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

// first is get for what was put or kept last of its place.
func (r *recent[K, V]) first(k K) (v V, ok bool) {
	if len(r.sets) > 0 {
		if s := &r.setOf(k)[0]; s.used && s.key == k {
			return s.value, true
		}
	}
	return v, false
}

// keep is get for what is going to be used again.
func (r *recent[K, V]) keep(k K) (v V, ok bool) {
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

func (r *recent[K, V]) forget(k K) {
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

func (r *recent[K, V]) clear() { r.sets, r.count = nil, 0 }

// sharedRecent is a recent for many goroutines.
type sharedRecent[K comparable, V any] struct {
	mu sync.Mutex
	is recent[K, V]
}

func newSharedRecent[K comparable, V any](place func(K) uint64) *sharedRecent[K, V] {
	return &sharedRecent[K, V]{is: recent[K, V]{place: place}}
}

func (r *sharedRecent[K, V]) set(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is.set(k, v)
}

func (r *sharedRecent[K, V]) get(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.is.get(k)
}

func (r *sharedRecent[K, V]) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.is.clear()
}
