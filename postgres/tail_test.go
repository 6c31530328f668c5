package postgres

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A page of a long log costs that page, also on a server that has no statistics, and a gap of any
// size is noticed.
//
//test:norace
func TestTailOfALongLog(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	const rows = 3 * mostCommits
	_, err := pool.Exec(background, `INSERT INTO lineage_log SELECT store, next, 1, id, data, 0 FROM lineage_log, generate_series(2, $1::int) next`, rows)
	require.NoError(t, err)

	first, err := e.log.lastRow(background, 1)
	require.NoError(t, err)
	var plan string
	require.NoError(t, pool.QueryRow(background, `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) `+tailSQL, e.log.store, int64(1), int64(first.next()+mostCommits), mostRead).Scan(&plan))
	read := 0
	for _, m := range regexp.MustCompile(`"Actual Rows": (\d+)`).FindAllStringSubmatch(plan, -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		read = max(read, n)
	}
	require.Equal(t, mostCommits+1, read, plan)

	total := 0
	for at, more := first, true; more; {
		var page []logRow
		page, more, err = e.log.tail(background, at, mostCommits)
		require.NoError(t, err)
		total += len(page)
		for i := range page {
			at = at.after(&page[i])
		}
	}
	require.Equal(t, rows-1, total)

	_, err = pool.Exec(background, `DELETE FROM lineage_log WHERE n BETWEEN 2 AND $1`, rows-1)
	require.NoError(t, err)
	_, _, err = e.log.tail(background, first, mostCommits)
	require.ErrorIs(t, err, backend.ErrCorrupt)
}
