package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/sqladapter"
)

func twoConnections(c *pgxpool.Config) { c.MaxConns = 2 }

// A commit that gets no connection was not sent, so it is known that it was not applied.
//
//test:norace
func TestNoConnectionIsFree(t *testing.T) {
	formerTime, formerPatience := connectionTime, patience
	defer func() { connectionTime, patience = formerTime, formerPatience }()
	pool := newPool(t, pgtest.DSN(t), twoConnections)
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	for _, contended := range []int{0, mostContended} {
		e.writing.Lock()
		e.contended = contended
		e.writing.Unlock()
		var held []*pgxpool.Conn
		for range 2 {
			conn, err := pool.Acquire(background)
			require.NoError(t, err)
			t.Cleanup(conn.Release) // also after a failure, because closing the pool waits for it
			held = append(held, conn)
		}
		connectionTime, patience = 20*time.Millisecond, 50*time.Millisecond
		_, commit := threadCommit()
		_, err := e.Apply(background, commit, backend.Options{})
		require.ErrorIs(t, err, sqladapter.ErrBusy)
		require.ErrorIs(t, err, backend.ErrConflict, "nothing was changed")
		require.NotErrorIs(t, err, backend.ErrUncertain)
		_, err = e.Head(background)
		require.ErrorIs(t, err, sqladapter.ErrBusy)
		connectionTime, patience = formerTime, formerPatience
		for _, conn := range held {
			conn.Release()
		}
		createThread(t, e, backend.Full)
	}
	require.Len(t, history(t, e), 3)
	requireSound(t, e)
}

// Searches leave a connection to commits, however many there are and however long they take.
func TestSearchesLeaveConnections(t *testing.T) {
	dsn := pgtest.DSN(t)
	others := newPool(t, dsn, nil)
	e := handle(t, newPool(t, dsn, twoConnections), "s")
	tell(t, e, "one word")
	x := searching(t, lineage.New(e), search.Options{})
	require.Len(t, snippets(t, x, "word"), 1)
	tx, err := others.Begin(background)
	require.NoError(t, err)
	defer tx.Rollback(background) //nolint:errcheck // it may have been
	_, err = tx.Exec(background, `LOCK TABLE lineage_search_term IN ACCESS EXCLUSIVE MODE`, exec)
	require.NoError(t, err)
	results := make(chan error, 4)
	for range cap(results) {
		go func() {
			hits, err := x.Search(background, search.Query{Text: "word"})
			if err == nil && len(hits) != 1 {
				err = fmt.Errorf("%d hits", len(hits))
			}
			results <- err
		}()
	}
	eventually(t, others, `SELECT count(*) = 1 FROM pg_locks WHERE NOT granted`)
	for range 20 {
		limited, cancel := context.WithTimeout(background, time.Minute)
		_, commit := threadCommit()
		_, err := e.Apply(limited, commit, backend.Options{})
		require.NoError(t, err)
		cancel()
	}
	require.NoError(t, tx.Rollback(background))
	for range cap(results) {
		require.NoError(t, <-results)
	}
}

// Synced writes leave a connection to commits, as while a standby does not answer.
func TestSyncedWritesLeaveConnections(t *testing.T) {
	dsn := pgtest.DSN(t)
	others := newPool(t, dsn, nil)
	e := handle(t, newPool(t, dsn, twoConnections), "s")
	createThread(t, e, backend.Full)
	open := gate(t, others)
	var all []*pending
	for range 3 {
		contend(e)
		_, batch := threadCommits(3)
		require.Empty(t, e.commitBatch(batch))
		all = append(all, batch...)
	}
	synced := make(chan error, 3)
	for range cap(synced) {
		go func() { synced <- e.log.flush(background, e.cache.Load().last().head) }()
	}
	eventually(t, others, `SELECT count(*) = 1 FROM pg_locks WHERE NOT granted`)
	for range 20 {
		createThread(t, e, backend.Normal)
	}
	require.Zero(t, countAnswered(all))
	open()
	for _, p := range all {
		<-p.done
		require.NoError(t, p.err)
	}
	for range cap(synced) {
		require.NoError(t, <-synced)
	}
	requireSound(t, e)
}
