package embedded

// assoc is a map that starts as a short list: commits mostly touch one or two of
// anything. It is reused from commit to commit.
type assoc[K comparable, V any] struct {
	few  []pair[K, V]
	many map[K]V
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

const fewPairs = 16

func (a *assoc[K, V]) get(k K) (v V, ok bool) {
	for i := len(a.few) - 1; i >= 0; i-- {
		if a.few[i].key == k {
			return a.few[i].value, true
		}
	}
	v, ok = a.many[k]
	return v, ok
}

func (a *assoc[K, V]) set(k K, v V) {
	for i := range a.few {
		if a.few[i].key == k {
			a.few[i].value = v
			return
		}
	}
	if len(a.few) < fewPairs {
		a.few = append(a.few, pair[K, V]{k, v})
		return
	}
	if a.many == nil {
		a.many = make(map[K]V)
	}
	a.many[k] = v
}

func (a *assoc[K, V]) each(fn func(K, V)) {
	for i := range a.few {
		fn(a.few[i].key, a.few[i].value)
	}
	if a.many == nil { // sparing the start of a walk through nothing
		return
	}
	for k, v := range a.many {
		fn(k, v)
	}
}

// reset empties it. What is in the few places stays there until others come.
func (a *assoc[K, V]) reset() { a.few, a.many = a.few[:0], nil }
