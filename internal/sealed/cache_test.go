//test:race

package sealed

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The cache keeps what was used last, within its memory.
func TestCache(t *testing.T) {
	var c cache
	c.put(0, make([]byte, cacheBytes))
	require.Nil(t, c.get(0), "it is huge")
	for n := range 40 {
		c.put(n, make([]byte, cacheBytes/16-100))
		require.NotNil(t, c.get(0), "used again and again")
		require.LessOrEqual(t, c.Size(), cacheBytes)
	}
	require.Nil(t, c.get(20))
	require.NotNil(t, c.get(39))
	require.Equal(t, 16, c.Len())
}
