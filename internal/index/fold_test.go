package index

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/memtable"
	"github.com/lineage-store/lineage/lineage/backend"
)

// walkLeaves returns all leaves in order and checks that they are contiguous.
func walkLeaves(t *testing.T, db *DB) (leaves []leaf, sizes []int) {
	t.Helper()
	low := []byte{}
	require.NoError(t, db.bolt.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(leavesBucket).ForEach(func(k, v []byte) error {
			l, err := decodeLeaf(k[1:], append([]byte(nil), v...))
			require.NoError(t, err)
			require.NotNil(t, low, "a leaf after the one without end")
			require.Equal(t, string(low), string(k[1:]))
			l.low = append([]byte(nil), k[1:]...)
			low = l.high
			leaves, sizes = append(leaves, l), append(sizes, len(v))
			return nil
		})
	}))
	require.Nil(t, low, "the last leaf has an end")
	return leaves, sizes
}

func TestSplit(t *testing.T) {
	for _, size := range []int{0, 1, 30, 200, 900, 1500} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			db := open(t, newPath(t), Options{})
			m := model{}
			// Grow in waves, so that full leaves are split.
			for wave := range 4 {
				batch := batchOf(0, 200, same(strings.Repeat("v", size)))
				for i := range batch {
					batch[i].Key = fmt.Appendf(nil, "%s/%d", batch[i].Key, wave)
				}
				m.apply(batch)
				db.Apply(at(uint64(wave+1)), batch)
				require.NoError(t, db.Checkpoint())
			}
			requireModel(t, m, db)
			leaves, sizes := walkLeaves(t, db)
			entries := 0
			for i, l := range leaves {
				list, err := l.list(l.low, nil)
				require.NoError(t, err)
				entries += len(list)
				for _, e := range list {
					require.True(t, l.covers(e.Key))
				}
				if len(list) > 1 {
					require.LessOrEqual(t, sizes[i], 2*leafTarget+size)
				}
			}
			require.Len(t, m, entries)
		})
	}
}

func TestLargeValues(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{})
	m := model{}
	batch := batchOf(0, 300, same("small"))
	for i := 0; i < 300; i += 100 {
		batch[i].Value = []byte(strings.Repeat(string(rune('x'+i/100)), 1<<20+i))
	}
	m.apply(batch)
	db.Apply(at(1), batch)
	require.NoError(t, db.Checkpoint())
	requireModel(t, m, db)
	// Neighbors change, a large one shrinks, another is deleted.
	batch = append(batchOf(1, 100, same("changed")), Entry{Key: []byte(key(100)), Value: []byte{}}, Entry{Key: []byte(key(200))})
	m.apply(batch)
	db.Apply(at(2), batch)
	require.NoError(t, db.Close())
	requireModel(t, m, open(t, path, Options{}))
}

// Ranges whose entries were all deleted can be read and filled again.
func TestDeleteEverything(t *testing.T) {
	db := open(t, newPath(t), Options{})
	db.Apply(at(1), batchOf(0, 2000, same("v")))
	require.NoError(t, db.Checkpoint())
	gone := batchOf(0, 2000, same(""))
	for i := range gone {
		gone[i].Value = nil
	}
	db.Apply(at(2), gone)
	requireModel(t, model{}, db) // through the overlay
	require.NoError(t, db.Checkpoint())
	requireModel(t, model{}, db) // through the leaves
	leaves, _ := walkLeaves(t, db)
	for _, l := range leaves {
		require.Empty(t, l.entries)
	}
	m := model{}
	batch := batchOf(500, 1500, same("again"))
	m.apply(batch)
	db.Apply(at(3), batch)
	require.NoError(t, db.Checkpoint())
	requireModel(t, m, db)
}

// A state is stored even if nothing else changed, or only positions in the
// journal.
func TestStateAlone(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{})
	db.Apply(at(1), batchOf(0, 3, same("v")))
	require.NoError(t, db.Checkpoint())
	db.Apply(at(2), nil)
	require.NoError(t, db.Close())

	db = open(t, path, Options{})
	require.Equal(t, at(2), db.State())
	moved := at(2)
	moved.Segment, moved.Offset = 77, 88
	db.Apply(moved, batchOf(0, 1, same("moved")))
	require.NoError(t, db.Close())

	db = open(t, path, Options{})
	require.Equal(t, moved, db.State())
	require.NoError(t, model{key(0): "moved"}.checkGet(db, key(0)))
}

// The size of a fold's transaction is limited, whatever the size of the overlay.
func TestFoldInParts(t *testing.T) {
	for name, limits := range map[string]limits{
		"leaves": {leaves: 10, bytes: 1 << 30, rewrite: never},
		"bytes":  {leaves: 1 << 30, bytes: 64 << 10, rewrite: never},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, newPath(t), Options{})
			db.limits = limits
			m := model{}
			for n := range 2 {
				before := transaction(t, db)
				batch := batchOf(0, 400, same(strings.Repeat("v", 4<<10+n)))
				m.apply(batch)
				db.Apply(at(uint64(n+1)), batch)
				require.NoError(t, db.Checkpoint())
				// The first fold splits the only leaf.
				if least := 400 * 4 / 64; n == 1 {
					require.Greater(t, transaction(t, db)-before, least)
				}
			}
			requireModel(t, m, db)
			walkLeaves(t, db)
		})
	}
}

func transaction(t *testing.T, db *DB) (id int) {
	t.Helper()
	require.NoError(t, db.bolt.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }))
	return id
}

// A fold that is killed between its transactions leaves newer entries under an
// older state; replaying the missing commits corrects it.
func TestKillBetweenTransactions(t *testing.T) {
	m := model{}
	first, second := batchOf(0, 500, same("old")), batchOf(250, 750, same("newer"))
	for i := 0; i < len(second); i += 3 {
		second[i].Value = nil
	}
	m.apply(first)
	m.apply(second)
	for transactions := 1; ; transactions += 3 {
		path := newPath(t)
		db := open(t, path, Options{})
		db.Apply(at(1), first)
		require.NoError(t, db.Checkpoint())
		db.Apply(at(2), second)
		f := folder{source: newMemorySource(settled(db), []byte{}), limits: limits{leaves: 1, bytes: 1 << 20}}
		for range transactions {
			require.NoError(t, db.foldPart(&f, at(2)))
		}
		killed := copyFile(t, path)
		require.NoError(t, db.Close())
		db = open(t, killed, Options{})
		if f.done {
			require.Equal(t, at(2), db.State())
			requireModel(t, m, db)
			require.Greater(t, transactions, 4)
			return
		}
		require.Equal(t, at(1), db.State())
		db.Apply(at(2), second)
		requireModel(t, m, db)
		require.NoError(t, db.Checkpoint())
		requireModel(t, m, db)
	}
}

func copyFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	to := newPath(t)
	require.NoError(t, os.WriteFile(to, b, 0o600))
	return to
}

// Only folded entries survive a kill.
func TestKillWithoutClose(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{})
	m := model{}
	for n := uint64(1); n <= 5; n++ {
		batch := batchOf(int(n)*10, int(n)*10+50, same(fmt.Sprint("v", n)))
		db.Apply(at(n), batch)
		if n <= 3 {
			m.apply(batch)
		}
		if n == 3 {
			require.NoError(t, db.Checkpoint())
		}
	}
	killed := open(t, copyFile(t, path), Options{})
	require.Equal(t, at(3), killed.State())
	requireModel(t, m, killed)
}

// gate is a Durable that blocks until it is opened.
type gate struct {
	entered  sync.WaitGroup // done when the first call has come
	once     sync.Once
	released atomic.Bool
	wait     chan struct{}
}

func newGate() *gate {
	g := &gate{wait: make(chan struct{})}
	g.entered.Add(1)
	return g
}

func (g *gate) durable(uint64) error {
	g.once.Do(g.entered.Done)
	<-g.wait
	return nil
}

func (g *gate) release() {
	g.released.Store(true)
	close(g.wait)
}

// While a checkpoint hangs, reads and writes continue until the overlay has four
// times its size; then Throttle blocks until the checkpoint is done.
func TestThrottle(t *testing.T) {
	g := newGate()
	db := open(t, newPath(t), Options{OverlayBytes: 10_000, Durable: g.durable})
	m := model{}
	n := uint64(0)
	apply := func() {
		n++
		batch := batchOf(int(n), int(n)+10, same(fmt.Sprint("v", n)))
		m.apply(batch)
		db.Apply(at(n), batch)
		db.Settle()
	}
	for db.frozen == nil {
		apply()
		require.NoError(t, db.Throttle())
	}
	g.entered.Wait()
	for db.active.Bytes() < 40_000-2000 {
		apply()
		require.NoError(t, db.Throttle())
		require.NoError(t, m.checkGet(db, key(int(n))))
	}
	requireModel(t, m, db)
	require.False(t, g.released.Load())
	for db.active.Bytes() < 40_000 {
		apply()
	}
	held := make(chan bool)
	go func() {
		err := db.Throttle()
		held <- err == nil && g.released.Load()
	}()
	requireModel(t, m, db)
	g.release()
	require.True(t, <-held, "Throttle returned while the overlay was full")
	requireModel(t, m, db)
	require.NoError(t, db.Close())
}

// An error of a checkpoint is logged. It is returned to writers only while the
// overlay is full, and disappears with its cause.
func TestFoldError(t *testing.T) {
	cause := errors.New("no power")
	var failing atomic.Bool
	var logged atomic.Int64
	path := newPath(t)
	o := Options{
		OverlayBytes: 5000,
		Durable: func(uint64) error {
			if failing.Load() {
				return cause
			}
			return nil
		},
		Logger: logline.New(slog.LevelDebug, func(line string) {
			require.Contains(t, line, "no power")
			logged.Add(1)
		}),
	}
	db := open(t, path, o)
	m := model{}
	failing.Store(true)
	var err error
	n := uint64(0)
	for err == nil {
		require.Less(t, n, uint64(100_000)) // a busy machine settles the queue late
		n++
		batch := batchOf(int(n), int(n)+10, same(fmt.Sprint("v", n)))
		m.apply(batch)
		db.Apply(at(n), batch)
		err = db.Throttle()
	}
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, db.Checkpoint(), cause)
	require.Positive(t, logged.Load())
	requireModel(t, m, db)

	failing.Store(false)
	require.NoError(t, db.Checkpoint())
	require.NoError(t, db.Throttle())
	requireModel(t, m, db)
	saved, was := db.State(), m.clone()

	failing.Store(true)
	db.Apply(at(n+1), batchOf(0, 50, same("lost to the index")))
	require.ErrorIs(t, db.Close(), cause)
	require.NoError(t, db.Close())
	db = open(t, path, Options{})
	require.Equal(t, saved, db.State())
	requireModel(t, was, db)
}

// The file never has a commit that is not durable.
func TestDurableComesFirst(t *testing.T) {
	path := newPath(t)
	var durable uint64
	var db *DB
	db = open(t, path, Options{Durable: func(number uint64) error {
		require.GreaterOrEqual(t, number, durable)
		require.LessOrEqual(t, stored(t, db), durable)
		durable = number
		return nil
	}})
	for n := uint64(1); n <= 4; n++ {
		db.Apply(at(n), batchOf(0, int(n), same("v")))
		require.NoError(t, db.Checkpoint())
		require.Equal(t, n, durable)
		require.Equal(t, n, stored(t, db))
	}
}

// stored is the number in the file.
func stored(t *testing.T, db *DB) uint64 {
	var s State
	require.NoError(t, db.bolt.View(func(tx *bbolt.Tx) (err error) {
		_, err = s.load(tx)
		return err
	}))
	return s.Number
}

func TestClosed(t *testing.T) {
	db := open(t, newPath(t), Options{OverlayBytes: 100})
	db.Apply(at(1), batchOf(0, 10, same("v")))
	require.NoError(t, db.Checkpoint())
	s := db.Snapshot()
	s.Close()
	s.Close()
	require.NoError(t, db.Close())
	require.NoError(t, db.Close())
	for name, s := range map[string]*Snapshot{"closed": s, "of a closed index": db.Snapshot()} {
		_, _, err := s.Get([]byte(key(1)))
		require.ErrorIs(t, err, backend.ErrClosed, name)
		_, _, err = s.Last(nil, nil)
		require.ErrorIs(t, err, backend.ErrClosed, name)
		n := 0
		for _, err := range s.Scan(nil, nil) {
			require.ErrorIs(t, err, backend.ErrClosed, name)
			n++
		}
		require.Equal(t, 1, n, name)
		s.Close()
	}
	_, _, err := db.Get([]byte(key(1)))
	require.ErrorIs(t, err, backend.ErrClosed)
	db.Apply(at(2), batchOf(0, 10, same("w")))
	require.ErrorIs(t, db.Throttle(), backend.ErrClosed)
	require.ErrorIs(t, db.Checkpoint(), backend.ErrClosed)
}

// A fold that fails halfway is repeated from the start.
func TestFoldAgain(t *testing.T) {
	db := open(t, newPath(t), Options{})
	m := model{}
	batch := batchOf(0, 1000, same("first"))
	m.apply(batch)
	db.Apply(at(1), batch)
	require.NoError(t, db.Checkpoint())

	db.limits.leaves = 5
	room := db.mapped
	db.mapped = int(db.pages.inUse()) / 15 * 16 // the first transaction fits
	batch = batchOf(0, 2000, same("the second is longer"))
	m.apply(batch)
	db.Apply(at(2), batch)
	before := transaction(t, db)
	require.ErrorIs(t, db.Checkpoint(), errFull)
	require.Greater(t, transaction(t, db), before, "the fold did not get halfway")
	requireModel(t, m, db)

	db.mapped = room
	require.NoError(t, db.Checkpoint())
	requireModel(t, m, db)
	walkLeaves(t, db)
}

// settled returns the overlay with everything applied.
func settled(db *DB) memtable.Moment {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.settleLocked()
	return db.active.Latest()
}

// Entries that are not early appear with the state and not before, and so do
// early entries that replace another value.
func TestFoldEarly(t *testing.T) {
	path := newPath(t)
	early := func(k []byte) bool { return k[len(k)-1]%2 == 0 }
	db := open(t, path, Options{Early: early})
	db.limits = limits{leaves: 1, bytes: 1 << 20, rewrite: never}
	first, second := batchOf(0, 400, same("old")), batchOf(200, 800, same("newer"))
	for i := 0; i < len(second); i += 7 {
		second[i].Value = nil
	}
	db.Apply(at(1), first)
	require.NoError(t, db.Checkpoint())
	was := model{}
	was.apply(first)
	now := was.clone()
	now.apply(second)
	require.NoError(t, db.Close())
	good, err := os.ReadFile(path)
	require.NoError(t, err)

	seen := 0
	for transactions := 1; ; transactions += 5 {
		require.NoError(t, os.WriteFile(path, good, 0o600))
		db := open(t, path, Options{Early: early})
		db.Apply(at(2), second)
		f := db.newFolder(settled(db))
		f.limits = limits{leaves: 1, bytes: 1 << 20}
		for n := 0; n < transactions && !f.done; n++ {
			require.NoError(t, db.foldPart(f, at(2)))
		}
		killed := copyFile(t, path)
		require.NoError(t, db.Close())
		db = open(t, killed, Options{Early: early})
		if f.done {
			require.Equal(t, at(2), db.State())
			requireModel(t, now, db)
			require.Positive(t, seen)
			return
		}
		require.Equal(t, at(1), db.State())
		for k, v := range now {
			got, ok, err := db.Get([]byte(k))
			require.NoError(t, err)
			old, had := was[k]
			switch {
			case had:
				require.True(t, ok)
				require.Equal(t, old, string(got))
			case ok:
				require.True(t, early([]byte(k)))
				require.Equal(t, v, string(got))
				seen++
			}
		}
		require.NoError(t, db.Close())
	}
}
