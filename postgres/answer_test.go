package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// contend makes the next batches of a handle lock the store first, as while others write.
func contend(e *Engine) {
	e.writing.Lock()
	defer e.writing.Unlock()
	e.contended = mostContended
}

// threadCommits are commits of full durability that wait to be written.
func threadCommits(n int) (ids []structure.ThreadID, batch []*pending) {
	for range n {
		id, commit := threadCommit()
		ids = append(ids, id)
		batch = append(batch, &pending{ctx: background, commit: commit, full: true, done: make(chan struct{})})
	}
	return ids, batch
}

// flushing makes a number of synced writes possible at the same time.
func flushing(t *testing.T, most int) {
	t.Helper()
	was := mostFlushes
	mostFlushes = most
	t.Cleanup(func() { mostFlushes = was })
}

// gate holds back synced writes until it is opened.
func gate(t *testing.T, pool *pgxpool.Pool) (open func()) {
	t.Helper()
	tx, err := pool.Begin(background)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback(background) }) // it may have been
	_, err = tx.Exec(background, `LOCK TABLE lineage_durable IN SHARE MODE`, exec)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback(background)) }
}

func countAnswered(batch []*pending) (n int) {
	for _, p := range batch {
		select {
		case <-p.done:
			n++
		default:
		}
	}
	return n
}

// TestAnsweredWhenSynced holds back the synced write after a batch of several commits: they are in the log, and others can
// write, but they are not answered before. When the server stops meanwhile and loses them, they are written again, and so is
// the synced write when it is cancelled.
//
//test:norace
func TestAnsweredWhenSynced(t *testing.T) {
	for name, end := range map[string]string{"synced": "", "lost": "pg_terminate_backend", "cancelled": "pg_cancel_backend"} {
		t.Run(name, func(t *testing.T) {
			loses := name == "lost"
			pool := newPool(t, pgtest.DSN(t), nil)
			e, other := handle(t, pool, "s"), handle(t, pool, "s")
			_, first := createThread(t, e, backend.Full)
			require.NoError(t, e.log.flush(background, e.head)) // there is a row
			open := gate(t, pool)
			contend(e)
			ids, batch := threadCommits(3)
			require.Empty(t, e.commitBatch(batch))
			_, err := other.Thread(background, ids[2])
			require.NoError(t, err)
			eventually(t, pool, `SELECT count(*) = 1 FROM pg_locks WHERE NOT granted`)
			createThread(t, other, backend.Normal)
			require.Zero(t, countAnswered(batch))
			if loses {
				lose(t, pool, "s", first.Number+1)
			}
			if end != "" {
				_, err = pool.Exec(background, `SELECT `+end+`(pid) FROM pg_locks WHERE NOT granted`, exec)
				require.NoError(t, err)
			}
			open()
			for i, p := range batch {
				<-p.done
				require.NoError(t, p.err)
				_, err := other.Thread(background, ids[i])
				require.NoError(t, err)
			}
			require.Equal(t, e.cache.Load().durable.at().Number, first.Number+3)
			if loses {
				require.Len(t, history(t, other), 4)
			} else {
				require.Len(t, history(t, other), 5)
			}
			require.Equal(t, history(t, other), history(t, e))
			requireSound(t, e)
		})
	}
}

// The server loses a batch that waits for the synced write of one before it, and then another batch takes its numbers. No
// receipt names a commit that is gone, though the last batch of those that wait is there.
func TestAnsweredAfterALoss(t *testing.T) {
	flushing(t, 1)
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	createThread(t, e, backend.Full)
	require.NoError(t, e.log.flush(background, e.head)) // there is a row
	open := gate(t, pool)
	var all []*pending
	var ids []structure.ThreadID
	write := func() {
		contend(e)
		made, batch := threadCommits(3)
		require.Empty(t, e.commitBatch(batch))
		ids, all = append(ids, made...), append(all, batch...)
	}
	write()
	eventually(t, pool, `SELECT count(*) = 1 FROM pg_locks WHERE NOT granted`)
	write()
	lost := all[3].receipt.Number
	lose(t, pool, "s", lost)
	write()
	require.Equal(t, lost, all[6].receipt.Number)
	require.Zero(t, countAnswered(all))
	open()
	for i, p := range all {
		<-p.done
		require.NoError(t, p.err)
		_, err := other.Thread(background, ids[i])
		require.NoError(t, err, "commit %d was acknowledged, and is not there", p.receipt.Number)
		require.Contains(t, history(t, other)[p.receipt.Number-1], fmt.Sprintf("%d %x ", p.receipt.Number, p.receipt.ID))
	}
	require.Len(t, history(t, other), 1+len(all))
	requireSound(t, e)
}

// Synced writes do not wait for one another, up to a number of them. Another process has its own.
func TestSyncedWritesTogether(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { c.MaxConns = 20 })
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	createThread(t, e, backend.Full)
	open := gate(t, pool)
	var all []*pending
	write := func(e *Engine) {
		contend(e)
		_, batch := threadCommits(4)
		require.Empty(t, e.commitBatch(batch))
		all = append(all, batch...)
	}
	for i := range mostFlushes {
		write(e)
		eventually(t, pool, fmt.Sprintf(`SELECT count(*) = %d FROM pg_locks WHERE NOT granted`, i+1))
	}
	write(e) // waits for one of them
	write(other)
	eventually(t, pool, fmt.Sprintf(`SELECT count(*) = %d FROM pg_locks WHERE NOT granted`, mostFlushes+1))
	require.Zero(t, countAnswered(all))
	open()
	for _, p := range all {
		<-p.done
		require.NoError(t, p.err)
	}
	require.Len(t, history(t, other), 1+len(all))
	requireSound(t, other)
}

// The outcome of a request is durable when another process learns it.
func TestOutcomeIsDurable(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	_, commit := threadCommit()
	once := backend.Once{Session: [16]byte{1}, Sequence: 1}
	receipt, err := e.Apply(background, commit, backend.Options{Once: &once, Durability: backend.Normal})
	require.NoError(t, err)
	is, err := other.Outcome(background, once)
	require.NoError(t, err)
	require.Equal(t, receipt.Cursor, is.Cursor)
	require.Equal(t, receipt.Cursor, other.cache.Load().durable.at())
}

// A handle that is closed answers the commits that it wrote first.
func TestClosedWhileSyncing(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, err := New(background, pool, Options{Store: "s", Unsafe: true})
	require.NoError(t, err)
	createThread(t, e, backend.Full)
	contend(e)
	_, batch := threadCommits(3)
	require.Empty(t, e.commitBatch(batch))
	require.NoError(t, e.Close())
	require.Equal(t, 3, countAnswered(batch))
	for _, p := range batch {
		require.NoError(t, p.err)
	}
}

// A read that takes longer than its deadline ends with the error of the context, and not with that of the server, which would
// stop it a moment before.
func TestDeadlineOfAReadIsThatOfTheContext(t *testing.T) {
	e := handle(t, newPool(t, pgtest.DSN(t), nil), "s")
	for i := range 60 {
		ctx, cancel := context.WithTimeout(background, time.Duration(20_000+i*97)*time.Microsecond)
		var nothing string
		err := e.log.readOne(ctx, `SELECT pg_sleep(60)::text`, nil, &nothing)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
}
