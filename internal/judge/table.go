package judge

import "iter"

// OrderedMap is a map that keeps insertion order. It starts as a short list, because a commit mostly
// changes one or two subjects of a kind, and keeps its memory when it is emptied.
type OrderedMap[K comparable, V any] struct {
	entries []tableEntry[K, V]
	places  map[K]int // nil while there are few entries
}

type tableEntry[K comparable, V any] struct {
	key   K
	value V
}

const (
	fewEntries  = 16
	keptEntries = 64 // memory for more entries is freed
)

// Len returns the number of keys.
func (t *OrderedMap[K, V]) Len() int { return len(t.entries) }

func (t *OrderedMap[K, V]) place(k K) int {
	if t.places != nil {
		if i, ok := t.places[k]; ok {
			return i
		}
		return -1
	}
	for i := range t.entries {
		if t.entries[i].key == k {
			return i
		}
	}
	return -1
}

// Get returns the value of a key.
func (t *OrderedMap[K, V]) Get(k K) (v V, ok bool) {
	if i := t.place(k); i >= 0 {
		return t.entries[i].value, true
	}
	return v, false
}

// All yields the entries in insertion order.
func (t *OrderedMap[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for i := range t.entries {
			if !yield(t.entries[i].key, t.entries[i].value) {
				return
			}
		}
	}
}

func (t *OrderedMap[K, V]) set(k K, v V) {
	if i := t.place(k); i >= 0 {
		t.entries[i].value = v
		return
	}
	t.entries = append(t.entries, tableEntry[K, V]{k, v})
	switch {
	case t.places != nil:
		t.places[k] = len(t.entries) - 1
	case len(t.entries) > fewEntries:
		t.places = make(map[K]int, 4*fewEntries)
		for i := range t.entries {
			t.places[t.entries[i].key] = i
		}
	}
}

// drop removes a key. The last entry takes its place.
func (t *OrderedMap[K, V]) drop(k K) {
	i := t.place(k)
	if i < 0 {
		return
	}
	last := len(t.entries) - 1
	t.entries[i] = t.entries[last]
	t.entries[last] = tableEntry[K, V]{}
	t.entries = t.entries[:last]
	if t.places != nil {
		delete(t.places, k)
		if i < last {
			t.places[t.entries[i].key] = i
		}
	}
}

func (t *OrderedMap[K, V]) reset() { t.entries, t.places = emptied(t.entries), nil }

// emptied returns an empty list. It keeps the memory unless there is much of it.
func emptied[T any](list []T) []T {
	if cap(list) > keptEntries {
		return nil
	}
	clear(list)
	return list[:0]
}

// groups lists keys by owner. It is a log that becomes a map only when it is read.
type groups[G comparable, K any] struct {
	log     []tableEntry[G, K]
	sorted  int
	byOwner map[G][]K
}

func (g *groups[G, K]) add(owner G, k K) { g.log = append(g.log, tableEntry[G, K]{owner, k}) }

func (g *groups[G, K]) get(owner G) []K {
	if g.byOwner == nil && len(g.log) > 0 {
		g.byOwner = make(map[G][]K)
	}
	for _, e := range g.log[g.sorted:] {
		g.byOwner[e.key] = append(g.byOwner[e.key], e.value)
	}
	g.sorted = len(g.log)
	return g.byOwner[owner]
}

func (g *groups[G, K]) reset() {
	g.log, g.sorted, g.byOwner = emptied(g.log), 0, nil
}
