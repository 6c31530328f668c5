package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/records"
)

// The statistics of a store take a few round trips for hundreds of threads.
//
//test:norace
func TestRoundTripsOfStats(t *testing.T) {
	dsn := pgtest.DSN(t)
	writer := handle(t, newPool(t, dsn, nil), "s")
	for i := range 150 {
		tell(t, writer, fmt.Sprint("thread ", i), "two")
	}
	pool, trips := countedTrips(t, dsn)
	e := handle(t, pool, "s")
	trips(12, "stats", func() {
		stats, err := records.OfStats(t.Context(), lineage.New(e), false, nil)
		require.NoError(t, err)
		require.EqualValues(t, 300, stats.CopiedMessages)
		require.Equal(t, stats.LogicalBytes, stats.CopiedBytes)
		require.False(t, stats.CopiedExact)
	})
}
