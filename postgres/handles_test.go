package postgres

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func textBlock(s string) *structure.Block {
	return structure.NewBlock("text/plain", content.BlockOrigin{}, time.UnixMilli(1), []byte(s))
}

// TestManyHandles has many handles add to one run: none of them takes the place of another, and
// they all see the same in the end. It is so under every isolation level that a database may have
// by default, and through a pooler in transaction mode.
func TestManyHandles(t *testing.T) {
	check := func(t *testing.T, pool *pgxpool.Pool) {
		engines := make([]*Engine, 4)
		for i := range engines {
			engines[i] = handle(t, pool, "s")
		}
		c := beginCounter(t, engines[0])
		var won, lost atomic.Int64
		parallel(8, func(i int) {
			for range 10 {
				d := backend.Full
				if i%2 == 0 {
					d = backend.Normal
				}
				_, err := c.add(background, engines[i%len(engines)], d)
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, backend.ErrConflict):
					lost.Add(1)
				default:
					t.Errorf("%v", err)
				}
			}
		})
		require.EqualValues(t, 80, won.Load()+lost.Load())
		first := history(t, engines[0])
		for _, e := range engines {
			last, err := e.Last(background, c.run)
			require.NoError(t, err)
			require.EqualValues(t, won.Load(), last.Seq)
			require.Equal(t, first, history(t, e))
		}
		requireSound(t, engines[1])
	}
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			check(t, newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			}))
		})
	}
	t.Run("pooler", func(t *testing.T) {
		dsn, _ := pgtest.Pooled(t)(t)
		check(t, newPool(t, dsn, func(c *pgxpool.Config) { c.MaxConns = 30 }))
	})
}

// TestAgainstOneHandle has handles of one store do the same as one of another store, at random, and
// lose their caches in between.
func TestAgainstOneHandle(t *testing.T) {
	dsn := pgtest.DSN(t)
	pool := newPool(t, dsn, nil)
	stores := 0
	rapid.Check(t, func(rt *rapid.T) {
		stores++
		engines := make([]*Engine, 3)
		for i := range engines {
			e, err := New(background, pool, Options{Store: fmt.Sprint(stores), Unsafe: true})
			require.NoError(rt, err)
			defer func() { require.NoError(rt, e.Close()) }()
			engines[i] = e
		}
		var threads []structure.ThreadID
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			e := rapid.SampledFrom(engines).Draw(rt, "handle")
			switch rapid.IntRange(0, 5).Draw(rt, "step") {
			case 0: // an older one loses its caches
				e.writing.Lock()
				e.warm = nil
				e.judging.state.Cache.Forget()
				err := e.replaceCache(background, e.cache.Load())
				e.writing.Unlock()
				require.NoError(rt, err)
			case 1: // as after others wrote
				e.writing.Lock()
				e.contended = rapid.IntRange(0, 2).Draw(rt, "contended")
				e.writing.Unlock()
			case 2: // several at once
				batch := make([]*pending, rapid.IntRange(1, 4).Draw(rt, "batch"))
				for i := range batch {
					id, c := threadCommit()
					if len(threads) > 0 && rapid.IntRange(0, 3).Draw(rt, "deleted") == 0 {
						c.Records = []structure.Record{&structure.Deletion{Subject: structure.KindThread, Thread: rapid.SampledFrom(threads).Draw(rt, "thread")}}
						id = structure.ThreadID{}
					}
					batch[i] = &pending{ctx: background, commit: c, full: rapid.Bool().Draw(rt, "full"), done: make(chan struct{})}
					batch[i].o.Durability = backend.Normal
					if !id.IsZero() {
						threads = append(threads, id)
					}
				}
				for rest := batch; len(rest) > 0; {
					rest = e.commitAndWait(rest)
				}
				for _, p := range batch {
					if p.err != nil { // it was deleted before
						require.ErrorIs(rt, p.err, backend.ErrNotFound)
					}
				}
			default:
				id, _ := createThread(t, e, rapid.SampledFrom([]backend.Durability{backend.Full, backend.Normal}).Draw(rt, "durability"))
				threads = append(threads, id)
			}
		}
		want := history(t, engines[0])
		for _, e := range engines {
			require.Equal(rt, want, history(t, e))
			head, err := e.Head(background)
			require.NoError(rt, err)
			require.EqualValues(rt, len(want), head.Number)
			require.Equal(rt, head, e.cache.Load().durable.at())
		}
		requireSound(t, engines[0])
	})
}

// lose takes the rows from a number on, with their entries, as a server does that stops before it wrote them.
func lose(t testing.TB, pool *pgxpool.Pool, store string, from uint64) {
	t.Helper()
	_, err := pool.Exec(background, `DELETE FROM lineage_log WHERE n >= $1`, exec, int64(from))
	require.NoError(t, err)
	for _, table := range []string{"lineage_entry", "lineage_former", "lineage_head"} {
		_, err := pool.Exec(background, `DELETE FROM `+table, exec)
		require.NoError(t, err)
	}
	handle(t, pool, store) // makes the entries from the log
}

// TestLostCommits takes commits from the log that a handle knows, as a server does that stops before
// it wrote them, and has another handle write other commits in their place.
func TestLostCommits(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	old, other := handle(t, pool, "s"), handle(t, pool, "s")
	kept, _ := createThread(t, old, backend.Full)
	gone, lost := createThread(t, old, backend.Normal)
	snapshot, err := old.Snapshot(background)
	require.NoError(t, err)
	defer snapshot.Close()
	lose(t, pool, "s", lost.Number)

	// The number is free: it is not written after what is gone.
	_, err = old.Wait(background, lost)
	require.ErrorIs(t, err, backend.ErrDiverged)
	_, err = old.Thread(background, gone)
	require.ErrorIs(t, err, backend.ErrNotFound)
	_, err = old.Thread(background, kept)
	require.NoError(t, err)
	_, err = snapshot.Thread(background, gone)
	require.ErrorIs(t, err, backend.ErrExpired)

	for name, contended := range map[string]int{"alone": 0, "locked": 2} {
		t.Run(name, func(t *testing.T) {
			_, lost := createThread(t, old, backend.Normal)
			lose(t, pool, "s", lost.Number)
			_, another := createThread(t, other, backend.Full)
			require.Equal(t, lost.Number, another.Number)
			require.NotEqual(t, lost.ID, another.ID)
			old.writing.Lock()
			old.contended = contended
			old.writing.Unlock()
			// A writer that knows the lost commit goes on after the other.
			_, next := createThread(t, old, backend.Full)
			require.Equal(t, another.Number+1, next.Number)
			var diverged *backend.DivergedError
			for _, err := range old.Feed(background, lost) {
				require.ErrorAs(t, err, &diverged)
			}
			require.NotNil(t, diverged)
			require.Equal(t, history(t, other), history(t, old))
		})
	}
	// Writing is refused after a commit that is gone, also while nobody has its number.
	_, lost = createThread(t, old, backend.Normal)
	lose(t, pool, "s", lost.Number)
	_, again := createThread(t, old, backend.Full)
	require.Equal(t, lost.Number, again.Number)
	require.Equal(t, history(t, other), history(t, old))
	requireSound(t, old)
}

// TestDurable delivers to followers only what a synced write of theirs came after.
func TestDurable(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	writer, follower := handle(t, pool, "s"), handle(t, pool, "s")
	_, at := createThread(t, writer, backend.Normal)
	require.Less(t, writer.cache.Load().durable.at().Number, at.Number)
	flushed := func() (n int64) {
		require.NoError(t, pool.QueryRow(background, `SELECT coalesce(max(n), 0) FROM lineage_durable`, exec).Scan(&n))
		return n
	}
	_, err := follower.Head(background)
	require.NoError(t, err)
	require.Zero(t, flushed(), "reading needs no synced write")
	got, err := follower.Wait(background, backend.Cursor{})
	require.NoError(t, err)
	require.Equal(t, at, got)
	require.Equal(t, at, follower.cache.Load().durable.at())
	require.EqualValues(t, at.Number, flushed())
	_, at = createThread(t, writer, backend.Full)
	require.Equal(t, at, writer.cache.Load().durable.at())
	require.Len(t, history(t, writer), 2)
	require.Less(t, flushed(), int64(at.Number), "its own synced commit is enough")
}

// TestStoresAreApart has two stores in one database: nothing of one is known in the other.
func TestStoresAreApart(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	a, b := handle(t, pool, "a"), handle(t, pool, "b")
	require.NotEqual(t, a.StoreID(), b.StoreID())
	commit := &structure.Commit{Records: []structure.Record{textBlock("the same words")}}
	for _, e := range []*Engine{a, b} {
		r, err := e.Apply(background, commit, backend.Options{})
		require.NoError(t, err)
		require.Empty(t, r.Known, "content of another store is not known")
		require.EqualValues(t, 1, r.Number)
	}
	createThread(t, a, backend.Full)
	require.Len(t, history(t, a), 2)
	require.Len(t, history(t, b), 1)
	_, err := New(background, pool, Options{Store: "c", Unsafe: true, MustExist: true})
	require.ErrorIs(t, err, backend.ErrNotFound)
	for _, name := range []string{"", string(make([]byte, MaxName+1))} {
		_, err = New(background, pool, Options{Store: name, Unsafe: true})
		require.ErrorIs(t, err, backend.ErrInvalid)
	}
	for _, name := range []string{"a", "new"} {
		_, err = New(background, pool, Options{Store: name})
		require.ErrorIs(t, err, errUnsafe)
	}
	_, err = New(background, pool, Options{Store: "new", Unsafe: true, MustExist: true})
	require.ErrorIs(t, err, backend.ErrNotFound, "it was refused before it was created")
	empty := newPool(t, pgtest.DSN(t), nil)
	_, err = New(background, empty, Options{Store: "a"})
	require.ErrorIs(t, err, errUnsafe)
	var tables int
	require.NoError(t, empty.QueryRow(background, `SELECT count(*) FROM pg_tables WHERE tablename LIKE 'lineage%'`, exec).Scan(&tables))
	require.Zero(t, tables)
}

// TestStats counts the bytes of the store in the database, and of no other.
func TestStats(t *testing.T) {
	folding(t, 0)
	pool := newPool(t, pgtest.DSN(t), nil)
	a, b := handle(t, pool, "a"), handle(t, pool, "b")
	for range 20 {
		createThread(t, a, backend.Normal)
	}
	createThread(t, b, backend.Normal)
	of := func(e *Engine) uint64 {
		s, err := e.Stats(background)
		require.NoError(t, err)
		return s.StoredBytes
	}
	one := of(b)
	require.Greater(t, one, uint64(rowBytes))
	createThread(t, b, backend.Normal)
	further := of(b) - one
	require.InDelta(t, one+19*further, of(a), 100)
}
