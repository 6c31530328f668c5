package searchindex

import (
	"maps"
	"sync"
)

// terms are numbers of terms that the index has. They are valid until another process writes.
type terms struct {
	mu      sync.Mutex
	version int64
	stamp   int64
	numbers map[string]int32
}

// mostTerms limits the terms that are kept.
const mostTerms = 200_000

// of returns the terms that are known in a state of the index. The caller does not change them.
func (t *terms) of(m *meta) map[string]int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.version != m.Version || t.stamp != m.stamp {
		return nil
	}
	return t.numbers
}

// learn replaces the terms of the state was, with more terms, by those of the state is. Without more it has none.
func (t *terms) learn(was, now *meta, more map[string]int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := make(map[string]int32, len(more))
	if more != nil && t.version == was.Version && t.stamp == was.stamp && len(t.numbers)+len(more) <= mostTerms {
		maps.Copy(next, t.numbers)
	}
	maps.Copy(next, more)
	t.version, t.stamp, t.numbers = now.Version, now.stamp, next
}
