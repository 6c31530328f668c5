package lineage_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// Messages added together cost no more than single ones: their content is in the same commit and is
// not referenced by hash.
func TestBatchesCostNoMoreThanTheirMessages(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	journal := func() uint64 {
		stats, err := s.Stats(bg)
		require.NoError(t, err)
		return stats.StoredBytes - stats.IndexBytes
	}
	const n = 300
	items := make([]lineage.Item, n)
	for i := range items {
		items[i] = lineage.User(fmt.Sprintf("message %03d", i))
	}
	before := journal()
	_, err := c.Extend(bg, items...)
	require.NoError(t, err)
	require.Less(t, journal()-before, uint64(n*50))
}
