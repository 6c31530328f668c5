package postgres

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
)

// underLoad does something to the server while several handles write, n times, each after so many more commits were
// acknowledged.
func underLoad(t *testing.T, l *load, n int, commits int64, disturb func(i int)) {
	t.Helper()
	enough := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() { l.writeUntil(enough) })
	defer writing.Wait()
	defer close(enough)
	for i := range n {
		l.progress(t, commits)
		disturb(i)
	}
	l.progress(t, commits)
}

// progress waits until so many more commits were acknowledged.
func (l *load) progress(t *testing.T, commits int64) {
	t.Helper()
	limit := time.Now().Add(5 * time.Minute)
	for from := l.done.Load(); l.done.Load() < from+commits; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(limit), "nobody writes any more")
	}
}

// TestStoppedServer stops the server under load, at once and in order, and starts it again: commits
// of full durability are there once, and handles and followers go on, or hear that the history is
// another one.
func TestStoppedServer(t *testing.T) {
	campaign.Long(t)
	c := pgtest.Own(t)
	pools := []*pgxpool.Pool{newPool(t, c.DSN("postgres"), nil), newPool(t, c.DSN("postgres"), nil), newPool(t, c.DSN("postgres"), nil)}
	old := handle(t, pools[2], "s") // it caches the head and does nothing meanwhile
	l := newLoad(handle(t, pools[0], "s"), handle(t, pools[1], "s"))
	var heads []backend.Cursor
	underLoad(t, l, campaign.Rounds(4), 20, func(i int) {
		head, err := old.Head(background)
		require.NoError(t, err)
		heads = append(heads, head)
		require.NoError(t, c.Stop(i%4 != 3))
		require.NoError(t, c.Run())
	})
	l.check(t, handle(t, pools[2], "s"), true)
	there := make(map[backend.Cursor]bool)
	for c, err := range l.engines[0].Feed(background, backend.Cursor{}) {
		require.NoError(t, err)
		there[backend.Cursor{Number: c.Number, ID: c.ID}] = true
	}
	for _, head := range heads {
		var err error
		for _, err = range old.Feed(background, head) {
			break
		}
		if there[head] {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, backend.ErrDiverged)
		}
	}
	require.Equal(t, history(t, l.engines[0]), history(t, old))
}

// TestFullTablespace fills the file system of the log: commits are refused and not applied, reading goes
// on, and so does writing when there is space again.
func TestFullTablespace(t *testing.T) {
	campaign.Long(t)
	c := pgtest.Own(t)
	place := smallDisk(t, c.Dir())
	pool := newPool(t, c.DSN("postgres"), nil)
	witness := handle(t, pool, "s")
	for _, statement := range []string{`CREATE TABLESPACE small LOCATION '` + place + `/data'`, `ALTER TABLE lineage_log SET TABLESPACE small`, `ALTER INDEX lineage_log_pkey SET TABLESPACE small`} {
		_, err := pool.Exec(background, statement, exec)
		require.NoError(t, err)
	}
	l := newLoad(handle(t, pool, "s"), handle(t, newPool(t, c.DSN("postgres"), nil), "s"))
	l.write(5)
	filler, err := os.Create(filepath.Join(place, "filler"))
	require.NoError(t, err)
	defer filler.Close()
	for block := make([]byte, 4096); err == nil; {
		_, err = filler.Write(block)
	}
	before := l.done.Load()
	refused := func() bool {
		_, commit := threadCommit()
		_, err := witness.Apply(background, commit, backend.Options{})
		if err == nil { // there was room in a page
			l.full[subject(commit.Records[0])] = true
			return false
		}
		require.ErrorContains(t, err, "53100")
		require.NotErrorIs(t, err, backend.ErrUncertain)
		return true
	}
	for !refused() {
	}
	l.write(5)
	require.Less(t, l.done.Load(), before+5*writers)
	require.Empty(t, l.unknown)
	_, err = witness.Head(background)
	require.NoError(t, err)
	require.NoError(t, filler.Truncate(0))
	l.write(5)
	l.check(t, handle(t, pool, "s"), false)
}

// pair starts a server and a synchronous standby, and returns connections to the server.
func pair(t *testing.T) (first, second *pgtest.Server, pool *pgxpool.Pool) {
	t.Helper()
	first = pgtest.Own(t, "wal_level=replica", "max_wal_senders=4", "hot_standby=on")
	pool = newPool(t, first.DSN("postgres"), nil)
	handle(t, pool, "s") // it makes the tables
	second, err := first.Standby("second")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, second.Close()) })
	for _, statement := range []string{`ALTER SYSTEM SET synchronous_standby_names = 'second'`, `SELECT pg_reload_conf()`} {
		_, err := pool.Exec(background, statement, exec)
		require.NoError(t, err)
	}
	eventually(t, pool, `SELECT coalesce(max(sync_state), '') = 'sync' FROM pg_stat_replication`)
	return first, second, pool
}

// eventually waits until a query returns true.
func eventually(t *testing.T, pool *pgxpool.Pool, query string) {
	t.Helper()
	require.Eventually(t, func() (is bool) {
		err := pool.QueryRow(background, query, exec).Scan(&is)
		return err == nil && is
	}, 5*time.Minute, 5*time.Millisecond)
}

// TestPromotedStandby has a standby take over from a server that stops under load, and waited for the
// standby: handles find it by themselves, and nothing that was acknowledged at full durability is lost.
func TestPromotedStandby(t *testing.T) {
	campaign.Long(t)
	for range campaign.Rounds(1) {
		first, second, _ := pair(t)
		dsn := first.FailoverDSN(second, "postgres")
		l := newLoad(handle(t, newPool(t, dsn, nil), "s"), handle(t, newPool(t, dsn, nil), "s"))
		old := handle(t, newPool(t, dsn, nil), "s")
		underLoad(t, l, 1, 20, func(int) {
			_, err := old.Head(background)
			require.NoError(t, err)
			require.NoError(t, first.Stop(true))
			standby := newPool(t, second.DSN("postgres"), nil)
			_, err = standby.Exec(background, `SELECT pg_promote()`, exec)
			require.NoError(t, err)
		})
		l.check(t, handle(t, newPool(t, dsn, nil), "s"), true)
		require.Equal(t, history(t, l.engines[0]), history(t, old))
	}
}

// TestCancelledWait ends the wait of a commit for the standby, which is stopped: the commit is there
// already, but not acknowledged before the standby has it. It waits again, in another transaction. When the
// standby stays away, it is not known.
func TestCancelledWait(t *testing.T) {
	campaign.Long(t)
	first, second, pool := pair(t)
	const waiting = ` FROM pg_stat_activity WHERE wait_event = 'SyncRep'`
	for _, end := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		for _, contended := range []int{0, 2} {
			away := end == "pg_terminate_backend" && contended == 0 // one case, because it takes all of patience
			e := handle(t, newPool(t, first.DSN("postgres"), nil), "s")
			e.writing.Lock()
			e.contended = contended
			e.writing.Unlock()
			require.NoError(t, second.Stop(false))
			id, commit := threadCommit()
			done := make(chan error, 1)
			go func() {
				_, err := e.Apply(background, commit, backend.Options{Durability: backend.Full})
				done <- err
			}()
			eventually(t, pool, `SELECT count(*) = 1`+waiting)
			var begun time.Time
			require.NoError(t, pool.QueryRow(background, `SELECT query_start`+waiting, exec).Scan(&begun))
			var ended int64
			require.NoError(t, pool.QueryRow(background, `SELECT count(*) FILTER (WHERE `+end+`(pid))`+waiting, exec).Scan(&ended))
			require.EqualValues(t, 1, ended)
			require.Eventually(t, func() (again bool) {
				_ = pool.QueryRow(background, `SELECT count(*) > 0`+waiting+` AND query_start > $1`, exec, begun).Scan(&again)
				return again || len(done) > 0
			}, 5*time.Minute, 5*time.Millisecond)
			var err error
			if away || len(done) > 0 {
				err = <-done
				require.ErrorIs(t, err, backend.ErrUncertain, "it was acknowledged without the standby")
			}
			require.NoError(t, second.Run())
			if err == nil {
				if err = <-done; err != nil {
					require.ErrorIs(t, err, backend.ErrUncertain)
				}
			}
			eventually(t, pool, `SELECT count(*) = 0`+waiting)
			_, err = e.Thread(background, id)
			require.NoError(t, err)
			require.NoError(t, e.Sync(background))
		}
	}
}

// TestDumpHeldOpen writes while a transaction keeps its snapshot, as a dump does: it sees what it saw, and
// nobody waits for it. A campaign holds it for ten minutes and logs how many commits a second were
// made before, and in the last minute.
func TestDumpHeldOpen(t *testing.T) {
	dsn := pgtest.DSN(t)
	pools := []*pgxpool.Pool{newPool(t, dsn, nil), newPool(t, dsn, nil)}
	l := newLoad(handle(t, pools[0], "s"), handle(t, pools[1], "s"))
	minutes := func(n int) (last float64) {
		if !campaign.Runs() {
			l.write(5)
			return 0
		}
		enough := make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() { l.writeUntil(enough) })
		for range n {
			before, start := l.done.Load(), time.Now()
			time.Sleep(time.Minute)
			last = float64(l.done.Load()-before) / time.Since(start).Seconds()
		}
		close(enough)
		writing.Wait()
		return last
	}
	before := minutes(1)
	dump, err := newPool(t, dsn, nil).BeginTx(background, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	require.NoError(t, err)
	count := func() (n int) {
		require.NoError(t, dump.QueryRow(background, `SELECT coalesce(sum(count), 0) FROM lineage_log`, exec).Scan(&n))
		return n
	}
	is := count()
	during := minutes(10)
	require.Equal(t, is, count())
	require.NoError(t, dump.Rollback(background))
	l.check(t, handle(t, newPool(t, dsn, nil), "s"), false)
	if campaign.Runs() {
		t.Logf("commits a second: %.0f before, %.0f while the dump was open: %.2f", before, during, during/before)
	}
}

// TestStandbyBehind reads from two standbys, of which one has stopped replaying, through connections that lead to one or the
// other. What the one behind does not have yet is not taken for another history: followers wait for it.
func TestStandbyBehind(t *testing.T) {
	campaign.Long(t)
	first, second, pool := pair(t)
	third, err := first.Standby("third")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, third.Close()) })
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	ahead, behind := newPool(t, second.DSN("postgres"), nil), newPool(t, third.DSN("postgres"), nil)
	eventually(t, behind, `SELECT count(*) = 1 FROM lineage_log`)
	_, err = behind.Exec(background, `SELECT pg_wal_replay_pause()`, exec)
	require.NoError(t, err)
	createThread(t, e, backend.Full)
	eventually(t, ahead, `SELECT count(*) = 2 FROM lineage_log`)
	at, err := e.Head(background)
	require.NoError(t, err)

	wrong := backend.Cursor{Number: 1, ID: at.ID + 1}
	var readers []*Engine
	for range 2 { // handles that read the one ahead before
		var turned atomic.Bool
		both := newPool(t, second.DSN("postgres"), func(c *pgxpool.Config) {
			c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
				if turned.Load() {
					c.Host, c.Port = behind.Config().ConnConfig.Host, behind.Config().ConnConfig.Port
				}
				return nil
			}
		})
		r := handle(t, both, "s")
		readers = append(readers, r)
		require.Len(t, history(t, r), 2)
		require.NoError(t, r.log.checkCursor(background, at))
		require.ErrorIs(t, r.log.checkCursor(background, wrong), backend.ErrDiverged)
		latest, err := r.latest(background, need{})
		require.NoError(t, err)
		turned.Store(true)
		both.Reset()

		require.ErrorIs(t, r.log.flush(background, latest.state.head), errLagging)
		require.ErrorIs(t, r.log.checkCursorOnce(background, at), errLagging)
		require.ErrorIs(t, r.log.checkCursor(background, wrong), backend.ErrDiverged)
		now, err := r.Wait(background, backend.Cursor{})
		require.NoError(t, err)
		require.EqualValues(t, 1, now.Number)
		require.Len(t, history(t, r), 1)
	}
	var queries atomic.Int64
	var mixed atomic.Bool
	each := newPool(t, first.DSN("postgres"), func(c *pgxpool.Config) { // each query has its own connection
		c.AfterRelease = func(*pgx.Conn) bool { return false }
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			if mixed.Load() && queries.Add(1) == 1 {
				c.Host, c.Port = behind.Config().ConnConfig.Host, behind.Config().ConnConfig.Port
			}
			return nil
		}
	})
	r := handle(t, each, "s")
	mixed.Store(true)
	require.ErrorIs(t, r.log.checkCursorOnce(background, at), errLagging, "first the standby is asked, then the primary")
	require.NoError(t, r.log.checkCursor(background, at))
	require.ErrorIs(t, r.log.checkCursor(background, backend.Cursor{Number: at.Number + 1, ID: at.ID}), backend.ErrDiverged)
	var waiting sync.WaitGroup
	for _, r := range readers {
		waiting.Go(func() {
			next, err := r.Wait(background, at)
			assert.NoError(t, err)
			assert.EqualValues(t, 3, next.Number)
		})
	}
	createThread(t, e, backend.Full)
	_, err = behind.Exec(background, `SELECT pg_wal_replay_resume()`, exec)
	require.NoError(t, err)
	waiting.Wait()
	for _, r := range readers {
		require.NoError(t, r.log.checkCursor(background, at))
		require.Len(t, history(t, r), 3)
	}
}
