package sealed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The cache keeps what was used last, within its memory.
func TestCache(t *testing.T) {
	var c cache
	c.put(cacheKey{0, 0}, "huge", cacheBytes)
	require.Nil(t, c.get(cacheKey{0, 0}))
	for n := range 40 {
		c.put(cacheKey{0, n}, n, cacheBytes/16)
		require.Equal(t, 0, c.get(cacheKey{0, 0}), "used again and again")
		require.LessOrEqual(t, c.Size(), cacheBytes)
	}
	require.Nil(t, c.get(cacheKey{0, 20}))
	require.Equal(t, 39, c.get(cacheKey{0, 39}))
	require.Equal(t, 16, c.Len())
}
