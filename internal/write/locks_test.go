package write

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/structure"
)

// Whoever has the lock of one context keeps nobody from any other, and the locks of
// contexts that nobody appends to are gone.
func TestContextLocks(t *testing.T) {
	var l contextLocks
	ids := make([]structure.ContextID, 1000)
	locks := make([]*ContextLock, len(ids))
	for i := range ids {
		ids[i] = structure.NewID[structure.ContextID]()
		locks[i] = l.lock(ids[i]) // would not return if two shared one
	}
	for _, lock := range locks {
		lock.Unlock()
	}
	counts := make([]int, 3) // without the locks, this is a data race
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 300 {
				k := (w + i) % len(counts)
				lock := l.lock(ids[k])
				counts[k]++
				lock.Unlock()
			}
		})
	}
	all.Wait()
	require.Equal(t, []int{800, 800, 800}, counts)
	for i := range l.shards {
		require.Empty(t, l.shards[i].held)
		require.Zero(t, l.shards[i].wanted.Load())
	}
}
