//test:race

package lru_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/lru"
)

// The cache keeps what was used last, within its size.
func TestCache(t *testing.T) {
	var c lru.Cache[int, string]
	_, ok := c.Get(0)
	require.False(t, ok)
	for n := range 40 {
		c.Put(n, "value", 1, 16)
		v, ok := c.Get(0)
		require.True(t, ok, "used again and again")
		require.Equal(t, "value", v)
		require.LessOrEqual(t, c.Size(), 16)
	}
	require.Equal(t, 16, c.Len())
	_, ok = c.Get(20)
	require.False(t, ok)
	_, ok = c.Get(39)
	require.True(t, ok)

	c.Put(39, "other", 5, 16)
	v, _ := c.Get(39)
	require.Equal(t, "value", v, "it is not replaced")
	require.Equal(t, 16, c.Size())

	c.Put(100, "huge", 17, 16)
	require.Equal(t, 1, c.Len(), "the last one stays")
	c.Put(101, "small", 1, 16)
	_, ok = c.Get(100)
	require.False(t, ok)
	c.Put(102, "small", 1, 16)
	c.Delete(func(n int) bool { return n < 102 })
	require.Equal(t, 1, c.Len())
	require.Equal(t, 1, c.Size())
	_, ok = c.Get(102)
	require.True(t, ok)
	c.Clear()
	require.Zero(t, c.Len())
	require.Zero(t, c.Size())
}
