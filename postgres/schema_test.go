package postgres

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
)

// TestOpenVersion8 opens tables of version 8, which have a row for each span and the renamed column of lineage_search, with a log.
// A program of that version that still runs can neither write nor read any more.
func TestOpenVersion8(t *testing.T) {
	folding(t, 64<<10)
	pool := newPool(t, pgtest.DSN(t), nil)
	was := handle(t, pool, "s")
	said := make([]string, 40)
	for i := range said {
		said[i] = fmt.Sprint("said ", i)
	}
	kept := tell(t, was, said...)
	want, order := history(t, was), inOrder(t, was)

	old := newPool(t, pgtest.DSN(t), nil)
	do := func(statement string, args ...any) {
		t.Helper()
		_, err := old.Exec(background, statement, append([]any{exec}, args...)...)
		require.NoError(t, err)
	}
	all := migrations
	migrations = migrations[:8]
	l := &log{pool: old, store: keyOf("s")}
	err := l.migrateOnce(background)
	migrations = all
	require.NoError(t, err)
	require.NoError(t, l.register(background, "s", was.StoreID()))
	rows, err := pool.Query(background, `SELECT store, n, count, id, data, entries FROM lineage_log`, exec)
	require.NoError(t, err)
	for rows.Next() {
		of, err := rows.Values()
		require.NoError(t, err)
		do(`INSERT INTO lineage_log (store, n, count, id, data, entries) VALUES ($1, $2, $3, $4, $5, $6)`, of...)
	}
	require.NoError(t, rows.Err())
	for _, statement := range []string{ // what that version has
		`INSERT INTO lineage_entry (store, epoch, key, age, value) SELECT store, 0, '\x7301', -1, '\x00' FROM lineage_store`,
		`INSERT INTO lineage_head (store, epoch, first, n, id, sums, folded) SELECT store, 0, 1, 1, 1, '', 0 FROM lineage_store`,
		`INSERT INTO lineage_former (store, epoch, n, part, keys, changes) SELECT store, 0, 0, 1, '{}', '\x01' FROM lineage_store`,
		`UPDATE lineage_search SET version = 1`,
	} {
		do(statement)
	}

	parallel(2, func(int) {
		e, err := New(background, old, Options{Store: "s", Unsafe: true})
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		tell(t, e, "more")
		require.NoError(t, e.Close())
	})
	e := handle(t, old, "s")
	is, err := e.log.look(background)
	require.NoError(t, err)
	require.Equal(t, len(migrations), is.version)
	require.Equal(t, was.StoreID(), e.StoreID())
	require.Equal(t, want, history(t, e)[:len(want)])
	require.Equal(t, order, inOrder(t, e)[2:])
	requireSaid(t, e, kept, said...)
	requireSound(t, e)
	do(`UPDATE lineage_search SET version = 1`)
	for _, statement := range []string{
		`SELECT sums FROM lineage_head`,
		`INSERT INTO lineage_head (store, epoch, first, n, id, sums, folded) SELECT store, 0, 1, 1, 1, '', 0 FROM lineage_store`,
	} {
		_, err := old.Exec(background, statement, exec)
		require.ErrorContains(t, err, "sums")
	}
}
