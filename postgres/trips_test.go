package postgres

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestRoundTrips counts what is sent to the server: it does not depend on what is in the store.
func TestRoundTrips(t *testing.T) {
	dsn := pgtest.DSN(t)
	writer := handle(t, newPool(t, dsn, nil), "s")
	said := make([]string, 600)
	for i := range said {
		said[i] = fmt.Sprint("message ", i)
	}
	thread := tell(t, writer, said...)
	main, err := thread.Active(background)
	require.NoError(t, err)

	counted := &cutter{}
	pool := newPool(t, dsn, func(c *pgxpool.Config) { // one connection, which is there before
		c.MaxConns, c.MinConns = 2, 1
		c.ConnConfig.DialFunc = cuttable(t, dsn, counted).Config().ConnConfig.DialFunc
	})
	require.NoError(t, pool.Ping(background))
	trips := func(most int, what string, do func()) {
		t.Helper()
		counted.arm(0, 0)
		do()
		counted.mu.Lock()
		defer counted.mu.Unlock()
		require.LessOrEqual(t, counted.count, most, what)
		require.Positive(t, counted.count, what)
	}
	var e *Engine
	trips(5, "open", func() { e = handle(t, pool, "s") })
	var c backend.Context
	trips(1, "context", func() {
		c, err = e.Context(background, main.ID())
		require.NoError(t, err)
	})
	trips(2, "last 20 messages", func() {
		n := 0
		for _, err := range e.Path(background, c.Tip, structure.Window{Last: 20}, backend.PathOptions{Bodies: true}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 20, n)
	})
	mine, err := lineage.New(e).Context(background, main.ID())
	require.NoError(t, err)
	_, err = mine.Extend(background, lineage.User("first"))
	require.NoError(t, err)
	for i := range 3 {
		trips(1, "a commit after one of this process", func() {
			_, err := mine.Extend(background, lineage.User(fmt.Sprint("more ", i)))
			require.NoError(t, err)
		})
	}
	var listed int
	trips(6, "list of threads", func() {
		for _, err := range e.ListThreads(background, backend.ThreadQuery{}) {
			require.NoError(t, err)
			listed++
		}
	})
	require.Equal(t, 1, listed)
}
