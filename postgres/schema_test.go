package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestOpenVersion8 opens tables of version 8, which have a row for each span and the renamed column of lineage_search, with a log.
// Entries may be in partitions. A program of that version that still runs can neither write nor read any more.
func TestOpenVersion8(t *testing.T) {
	for name, also := range map[string]string{"tables": "", "partitions": strings.ReplaceAll(manual(t, "Partitions"), "lineage_log", "lineage_entry")} {
		t.Run(name, func(t *testing.T) { openVersion8(t, also) })
	}
}

func openVersion8(t *testing.T, also string) {
	folding(t, 64<<10)
	pool := newPool(t, pgtest.DSN(t), nil)
	was := handle(t, pool, "s")
	texts := make([]string, 40)
	for i := range texts {
		texts[i] = fmt.Sprint("said ", i)
	}
	kept := tell(t, was, texts...)
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
	_, err = old.Exec(background, also, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)

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
	requireSaid(t, e, kept, texts...)
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

// A newer program changes the tables while two processes write. They wait for it, and then get an error that says which version
// they can use. What they wrote is in the log, and nothing else.
func TestNewerTablesUnderHandles(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool := newPool(t, dsn, nil)
	engines := []*Engine{handle(t, pool, "s"), handle(t, newPool(t, dsn, nil), "s")}
	require.NoError(t, tell(t, engines[0], "gone").Delete(background))
	var mu sync.Mutex
	var there []structure.ThreadID
	enough := make(chan struct{})
	var writers sync.WaitGroup
	failed := make([]error, 4)
	for i := range failed {
		writers.Go(func() {
			for failed[i] == nil {
				id, commit := threadCommit()
				if _, failed[i] = engines[i%2].Apply(background, commit, backend.Options{}); failed[i] == nil {
					mu.Lock()
					if there = append(there, id); len(there) == 20 {
						close(enough)
					}
					mu.Unlock()
				}
			}
		})
	}
	<-enough
	_, err := pool.Exec(background, `BEGIN; TRUNCATE lineage_former; ALTER TABLE lineage_head RENAME COLUMN numbers TO total; UPDATE lineage_schema SET version = version + 1; COMMIT`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	writers.Wait()
	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, backend.ErrNewerFormat)
		require.NotErrorIs(t, err, backend.ErrUncertain)
		require.ErrorContains(t, err, fmt.Sprintf("the tables have version %d, this program knows up to %d", len(migrations)+1, len(migrations)))
	}
	for _, err := range failed {
		refused(err)
	}
	for _, e := range engines {
		_, err := e.Head(background)
		refused(err)
		for _, err = range e.ListThreads(background, backend.ThreadQuery{}) {
			break
		}
		refused(err)
		_, err = e.Collect(background, backend.CollectOptions{})
		refused(err)
	}
	_, err = New(background, pool, Options{Store: "s", Unsafe: true})
	refused(err)
	_, err = pool.Exec(background, `BEGIN; TRUNCATE lineage_entry, lineage_head; ALTER TABLE lineage_head RENAME COLUMN total TO numbers; UPDATE lineage_schema SET version = version - 1; COMMIT`, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	e := handle(t, pool, "s")
	var is []structure.ThreadID
	for l, err := range e.ListThreads(background, backend.ThreadQuery{}) {
		require.NoError(t, err)
		is = append(is, l.ID)
	}
	require.ElementsMatch(t, there, is)
	requireSound(t, e)
}
