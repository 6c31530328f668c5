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
	"github.com/lineage-store/lineage/structure"
)

// emptied takes the entries of all stores, as if an earlier version had written them.
func emptied(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	for _, table := range []string{"lineage_entry", "lineage_former", "lineage_head"} {
		_, err := pool.Exec(background, `DELETE FROM `+table, exec)
		require.NoError(t, err)
	}
}

// TestFillStoreOfAnEarlierVersion makes the entries of a store that has none. Several processes open it at once, one of
// them is interrupted, and a program of the earlier version that still runs is refused.
func TestFillStoreOfAnEarlierVersion(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { c.MaxConns = 12 })
	was := handle(t, pool, "s")
	kept := tell(t, was, "one", "two", "three")
	require.NoError(t, tell(t, was, secret).Delete(background))
	_, err := was.Collect(background, all)
	require.NoError(t, err)
	for i := range 3 {
		batch := make([]*pending, 400)
		for k := range batch {
			_, commit := threadCommit()
			batch[k] = &pending{ctx: background, commit: commit, done: make(chan struct{})}
		}
		for len(batch) > 0 {
			batch = was.commitAndWait(batch)
		}
		tell(t, was, fmt.Sprint("more ", i))
	}
	want, counts := history(t, was), statsOf(t, was)
	emptied(t, pool)

	var done []int64
	stop := fmt.Errorf("enough")
	f := newFilling(was.log, was.head.epoch, was.head.epoch, nil, &served{log: was.log})
	require.ErrorIs(t, f.fillTo(background, uint64(len(want)), func(uint64) error { return stop }), stop)
	require.NotZero(t, f.at.Number)
	require.Less(t, f.at.Number, uint64(len(want)), "it was interrupted")
	parallel(3, func(i int) {
		o := Options{Store: "s", Unsafe: true}
		if i == 0 {
			o.Progress = func(n, _ int64) { done = append(done, n) }
		}
		e, err := New(background, pool, o)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		requireSound(t, e)
		require.NoError(t, e.Close())
	})
	require.IsNonDecreasing(t, append(done, int64(len(want))))
	e := handle(t, pool, "s")
	require.Equal(t, want, history(t, e))
	require.Equal(t, counts, statsOf(t, e))
	requireSaid(t, e, kept, "one", "two", "three")
	requireSound(t, e)

	_, err = pool.Exec(background, `INSERT INTO lineage_log (store, n, count, id, data) VALUES ($1, $2, 1, 1, '')`, exec, e.log.store, len(want)+1)
	require.ErrorContains(t, err, "entries")
}

// statsOf returns the counts of a store.
func statsOf(t testing.TB, e *Engine) backend.Stats {
	t.Helper()
	s, err := e.Stats(background)
	require.NoError(t, err)
	s.StoredBytes, s.IndexBytes = 0, 0
	return s
}

// TestPrune removes replaced versions: what is read stays the same, a snapshot from before expires, one from after does not,
// and a sequence that was begun before goes on.
func TestPrune(t *testing.T) {
	former := formerTime
	formerTime = 0
	t.Cleanup(func() { formerTime = former })
	folding(t, 0)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	thread := tell(t, e, "0")
	main, err := thread.Active(background)
	require.NoError(t, err)
	old, err := e.Snapshot(background)
	require.NoError(t, err)
	texts := []string{"0"}
	for i := range 40 {
		texts = append(texts, fmt.Sprint(i+1))
		_, err := main.Extend(background, lineage.User(texts[i+1]))
		require.NoError(t, err)
	}
	gone := tell(t, e, "gone")
	require.NoError(t, gone.Delete(background))
	young, err := e.Snapshot(background)
	require.NoError(t, err)
	versions := func() (n int) {
		require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM lineage_entry`, exec).Scan(&n))
		return n
	}
	_, err = old.Thread(background, thread.ID())
	require.NoError(t, err)
	before, want := versions(), history(t, e)
	require.NoError(t, e.log.prune(background, e.head.epoch))
	require.Less(t, versions(), before-100)
	var left int
	require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM lineage_entry WHERE value IS NULL`, exec).Scan(&left))
	require.Zero(t, left, "deletions that nobody can see any more")
	require.NoError(t, pool.QueryRow(background, `SELECT count(*) - count(DISTINCT key) FROM lineage_entry`, exec).Scan(&left))
	require.Zero(t, left)

	_, err = old.Thread(background, thread.ID())
	require.ErrorIs(t, err, backend.ErrExpired)
	_, err = young.Thread(background, thread.ID())
	require.NoError(t, err)
	for _, reader := range []*Engine{e, handle(t, pool, "s")} {
		requireSaid(t, reader, thread, texts...)
		require.Equal(t, want, history(t, reader))
		requireSound(t, reader)
	}
	_, err = main.Extend(background, lineage.User("on"))
	require.NoError(t, err)
	requireSound(t, e)
}

// Processes prune as they write.
func TestPruneLater(t *testing.T) {
	former := formerTime
	formerTime = 0
	t.Cleanup(func() { formerTime = former })
	folding(t, 0)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	thread := tell(t, e, "0")
	batch := make([]*pending, pruneEvery)
	for i := range batch {
		c := &structure.Commit{Records: []structure.Record{&structure.Thread{ID: thread.ID(), Title: fmt.Sprint("title ", i)}}}
		batch[i] = &pending{ctx: background, commit: c, done: make(chan struct{})}
	}
	for len(batch) > 0 {
		batch = e.commitAndWait(batch)
	}
	require.Eventually(t, func() bool {
		var horizon int64
		require.NoError(t, pool.QueryRow(background, `SELECT horizon FROM lineage_head`, exec).Scan(&horizon))
		return horizon > 0
	}, 5*time.Minute, 5*time.Millisecond)
	requireSound(t, e)
}

// One process prunes a store at a time, and a process that ends finishes what it began.
func TestPruneTogether(t *testing.T) {
	former := formerTime
	formerTime = 0
	t.Cleanup(func() { formerTime = former })
	folding(t, 0)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	main, err := tell(t, e, "0").Active(background)
	require.NoError(t, err)
	for i := range 20 {
		_, err := main.Extend(background, lineage.User(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	left := func() (n int) {
		require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM lineage_former`, exec).Scan(&n))
		return n
	}
	before := left()
	require.Positive(t, before)
	tx, err := pool.Begin(background)
	require.NoError(t, err)
	_, err = tx.Exec(background, `SELECT FROM lineage_former WHERE n > 0 ORDER BY n LIMIT 1 FOR UPDATE`, exec)
	require.NoError(t, err)
	require.NoError(t, e.log.prune(background, e.head.epoch), "another process prunes")
	require.Equal(t, before, left())
	require.NoError(t, tx.Rollback(background))

	ending, err := New(background, pool, Options{Store: "s", Unsafe: true})
	require.NoError(t, err)
	_, c := threadCommit()
	require.NoError(t, ending.begin())
	go func() {
		defer ending.going.Done()
		ctx := &endsMeanwhile{Context: background}
		_ = ending.log.prune(ctx, e.head.epoch)
	}()
	require.NoError(t, ending.Close())
	require.Zero(t, left())
	_, err = e.Apply(background, c, backend.Options{})
	require.NoError(t, err)
	requireSound(t, e)
}

// Pruning ends though others write.
func TestPruneEnds(t *testing.T) {
	former := formerTime
	formerTime = 0
	t.Cleanup(func() { formerTime = former })
	folding(t, 0)
	dsn, after := pgtest.DSN(t), &afterBatch{afterQuery{func() {}}}
	e := handle(t, newPool(t, dsn, func(c *pgxpool.Config) { c.ConnConfig.Tracer = after }), "s")
	main, err := tell(t, handle(t, newPool(t, dsn, nil), "s"), "0").Active(background)
	require.NoError(t, err)
	batches := 0
	after.do = func() {
		if batches++; batches < 20 {
			_, err := main.Extend(background, lineage.User(fmt.Sprint(batches)))
			require.NoError(t, err)
		}
	}
	require.NoError(t, e.log.prune(background, 0))
	after.do = func() {}
	require.Positive(t, batches)
	require.Less(t, batches, 20)
	requireSound(t, e)
}

// endsMeanwhile is a context that ends after it was looked at.
type endsMeanwhile struct {
	context.Context
	seen bool
}

func (c *endsMeanwhile) Err() error {
	if !c.seen {
		c.seen = true
		return nil
	}
	return context.Canceled
}

// TestCacheIsBounded reads more than the cache holds, more than is read at once, and more than a reader keeps. A damaged row
// is an error when it is reached.
//
//test:norace
func TestCacheIsBounded(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	writer := handle(t, pool, "s")
	texts := make([]string, 30)
	for i := range texts {
		texts[i] = fmt.Sprintf("%d %0*d", i, 2000, i)
	}
	thread := tell(t, writer, texts...)
	const limit = 16 << 10
	e, err := New(background, pool, Options{Store: "s", Unsafe: true, CacheBytes: limit})
	require.NoError(t, err)
	defer e.Close()
	read, kept := mostRead, mostKept
	defer func() { mostRead, mostKept = read, kept }()
	for range 2 {
		requireSaid(t, e, thread, texts...)
		mostRead, mostKept = 300, 1000
		c := e.cache.Load()
		require.LessOrEqual(t, c.items.Size(), limit)
		require.NotZero(t, c.items.Len())
	}
	for i := range 70 {
		tell(t, writer, fmt.Sprint("thread ", i))
	}
	for _, oldest := range []bool{false, true} {
		var want, got []structure.ThreadID
		for reader, into := range map[*Engine]*[]structure.ThreadID{writer: &want, e: &got} {
			for l, err := range reader.ListThreads(background, backend.ThreadQuery{Oldest: oldest}) {
				require.NoError(t, err)
				*into = append(*into, l.ID)
			}
			mostKept = kept
		}
		require.Len(t, want, 71)
		require.Equal(t, want, got)
		mostKept = 1000
	}
	main, err := thread.Active(background)
	require.NoError(t, err)
	tip, err := main.Tip(background)
	require.NoError(t, err)
	_, err = pool.Exec(background, `UPDATE lineage_log SET data = overlay(data PLACING '\x00' FROM 20) WHERE n = 22`, exec)
	require.NoError(t, err)
	mostRead = read
	damaged := handle(t, pool, "s")
	steps := 0
	for _, err := range damaged.Path(background, tip, structure.Window{}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
			require.ErrorContains(t, err, "row 22")
			break
		}
		steps++
	}
	require.Greater(t, steps, 15)
	require.Less(t, steps, 25)
}

// A program of the earlier version, which had the store open, collects it: handles make the entries of the epoch that it made.
func TestCollectedByAnEarlierVersion(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	kept := tell(t, e, "one", "two")
	_, err := pool.Exec(background, `INSERT INTO lineage_collection (store, epoch, live) VALUES ($1, 5, '')`, exec, e.log.store)
	require.ErrorContains(t, err, "entries", "it cannot any more")
	for i, first := range []*Engine{e, other} {
		_, err = pool.Exec(background, `UPDATE lineage_store SET epoch = $1`, exec, 5+i)
		require.NoError(t, err)
		if i == 0 {
			requireSaid(t, first, kept, "one", "two")
		}
		createThread(t, first, backend.Full)
		requireSaid(t, handle(t, pool, "s"), kept, "one", "two")
		requireSound(t, first)
	}
	require.Equal(t, history(t, e), history(t, other))
}

// TestForgottenByAnother has one process forget a session that another has in memory: it does not come back, nor does an
// earlier horizon.
func TestForgottenByAnother(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	a, b := handle(t, pool, "s"), handle(t, pool, "s")
	request := func(e *Engine, session byte, sequence uint64) error {
		_, c := threadCommit()
		_, err := e.Apply(background, c, backend.Options{Once: &backend.Once{Session: [16]byte{session}, Sequence: sequence}})
		return err
	}
	require.NoError(t, request(a, 1, 1))
	require.NoError(t, request(a, 1, 2))
	require.NoError(t, b.Forget(background, [16]byte{1}))
	require.ErrorIs(t, request(a, 1, 3), backend.ErrUncertain)
	require.ErrorIs(t, request(b, 1, 2), backend.ErrUncertain)
	require.ErrorIs(t, request(a, 2, 1), backend.ErrUncertain, "a session from before the horizon")
	require.Len(t, history(t, b), 2)
	requireSound(t, a)
}

// TestVerifyWhileOthersPrune verifies a store whose states expire before the entries are compared: it goes on in the latest.
func TestVerifyWhileOthersPrune(t *testing.T) {
	former := formerTime
	formerTime = 0
	t.Cleanup(func() { formerTime = former })
	folding(t, 0)
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	main, err := tell(t, other, "0").Active(background)
	require.NoError(t, err)
	times := 0
	progress := func(int64, int64) {
		times++
		for range 3 {
			_, err := main.Extend(background, lineage.User("more"))
			require.NoError(t, err)
		}
		require.NoError(t, other.log.prune(background, other.head.epoch))
	}
	for f, err := range e.Verify(background, backend.VerifyOptions{Deep: true, Progress: progress}) {
		require.NoError(t, err)
		require.Fail(t, "finding", f.String())
	}
	require.Equal(t, 1, times, "it did not begin again")
	_, err = pool.Exec(background, `DELETE FROM lineage_entry WHERE (key, age) = (SELECT key, age FROM lineage_entry ORDER BY key LIMIT 1)`, exec)
	require.NoError(t, err)
	found := 0
	for _, err := range e.Verify(background, backend.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		found++
	}
	require.Positive(t, found)
}
