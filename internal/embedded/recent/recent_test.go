//test:race

package recent

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A cached value is the last one set.
func TestRecent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Cache[int, string]{Place: func(k int) uint64 { return uint64(k) * 5 }}
		found := map[int]string{}
		keys := rapid.IntRange(0, 600)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "times") {
					k, v := keys.Draw(t, "key"), rapid.StringN(1, 3, 3).Draw(t, "value")
					r.Set(k, v)
					found[k] = v
					got, ok := r.Get(k)
					require.True(t, ok)
					require.Equal(t, v, got)
				}
			},
			"forget": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				r.Forget(k)
				delete(found, k)
			},
			"keep": func(t *rapid.T) {
				k := keys.Draw(t, "key")
				a, has := r.Get(k)
				b, kept := r.Keep(k)
				require.Equal(t, a, b)
				require.Equal(t, has, kept)
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "seldom") == 0 {
					r.Clear()
					clear(found)
				}
			},
			"": func(t *rapid.T) {
				for k := range 601 {
					if v, ok := r.Get(k); ok {
						require.Equal(t, found[k], v)
					}
				}
			},
		})
	})
}

// Consecutive keys do not evict each other.
func TestRecentHoldsNeighbours(t *testing.T) {
	r := Cache[int, int]{Place: func(k int) uint64 { return uint64(k) }}
	for k := range 2 * maxSets {
		r.Set(k, k)
	}
	for k := maxSets; k < 2*maxSets; k++ {
		_, ok := r.Get(k)
		require.True(t, ok, k)
	}
	require.LessOrEqual(t, 2*len(r.sets), maxSets)
}
