package embedded

import (
	"sync"

	"github.com/lineage-store/lineage/structure"
)

// runEnd is where a run ends and the digest of the history up to there.
type runEnd struct {
	seq    uint64
	digest structure.Digest
}

// recent remembers what was used lately, to save lookups. What it holds can always
// be looked up, so it forgets what was not used while as many others were.
type recent[K comparable, V any] struct {
	mu         sync.RWMutex
	most       int
	young, old map[K]V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, young: make(map[K]V)}
}

func (r *recent[K, V]) get(k K) (V, bool) {
	r.mu.RLock()
	v, ok := r.young[k]
	if !ok {
		v, ok = r.old[k]
	}
	r.mu.RUnlock()
	return v, ok
}

func (r *recent[K, V]) set(k K, v V) {
	r.mu.Lock()
	r.put(k, v)
	r.mu.Unlock()
}

func (r *recent[K, V]) put(k K, v V) {
	if len(r.young) >= r.most {
		if _, known := r.young[k]; !known {
			r.young, r.old = make(map[K]V, r.most), r.young
		}
	}
	r.young[k] = v
}

// keep is get for what is going to be used again.
func (r *recent[K, V]) keep(k K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[k]
	if !ok {
		if v, ok = r.old[k]; ok {
			r.put(k, v)
		}
	}
	return v, ok
}

func (r *recent[K, V]) forget(k K) {
	r.mu.Lock()
	delete(r.young, k)
	delete(r.old, k)
	r.mu.Unlock()
}

func (r *recent[K, V]) clear() {
	r.mu.Lock()
	r.young, r.old = make(map[K]V), nil
	r.mu.Unlock()
}
