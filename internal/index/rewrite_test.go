package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/lineage/backend"
)

// never is a size at which no fold of these tests rewrites the file.
const never = math.MaxUint64

// scattered is a batch of keys in random order, like most of a store's keys.
func scattered(choose *rand.Rand, n int) []Entry {
	batch := make([]Entry, n)
	for i := range batch {
		batch[i] = Entry{
			Key:   fmt.Appendf(nil, "h%016x", choose.Uint64()),
			Value: fmt.Appendf(nil, "%d", choose.IntN(1<<20)),
		}
	}
	return batch
}

// A fold that changes most leaves rewrites the file: it has no free pages, and its
// pages are nearly full. Every state reads the same before and after.
//
//test:norace
func TestFoldRewritesTheFile(t *testing.T) {
	path := newPath(t)
	yields := 0
	db := open(t, path, Options{OverlayBytes: 1 << 30, Yield: func() { yields++ }})
	db.limits.rewrite = 64 << 10
	choose := rand.New(rand.NewPCG(1, 2))
	m := model{}
	grow := func(n int) {
		batch := scattered(choose, 4_000)
		for i := range 20 { // some are deleted, some changed
			for k := range m {
				batch = append(batch, Entry{Key: []byte(k)})
				if i%2 == 0 {
					batch[len(batch)-1].Value = []byte("another")
				}
				break
			}
		}
		m.apply(batch)
		db.Apply(at(uint64(n)), batch)
		require.NoError(t, db.Checkpoint())
	}
	grow(1)
	require.Equal(t, path+compactSuffix, db.bolt.Path(), "it was written to a new file")
	was, before := m.clone(), db.Snapshot()
	t.Cleanup(before.Close) // Close waits for it
	yields = 0
	grow(2)
	requireModel(t, m, db)
	require.Equal(t, at(2), db.State())
	require.Greater(t, yields, 150, "one per leaf")
	require.NoError(t, was.checkAll(before), "older states read the older file")
	before.Close()
	walkLeaves(t, db)
	require.NoError(t, db.bolt.View(func(tx *bbolt.Tx) error {
		s := tx.Bucket(leavesBucket).Stats()
		require.Greater(t, s.LeafInuse, s.LeafAlloc*93/100)
		return nil
	}))
	require.Less(t, db.pages.end-db.pages.used(), uint64(20), "free pages")

	// Small changes are made in place, in the new file too.
	file := db.bolt
	batch := append(scattered(choose, 20), batchOf(0, 1_000, same("of keys that rise"))...)
	m.apply(batch)
	db.Apply(at(3), batch)
	require.NoError(t, db.Checkpoint())
	require.Same(t, file, db.bolt)
	requireModel(t, m, db)
	require.NoError(t, db.Close())
	db = open(t, path, Options{})
	require.Equal(t, at(3), db.State())
	requireModel(t, m, db)
	require.NoFileExists(t, path+compactSuffix)
}

// A process that dies during a rewrite leaves the old file unchanged.
//
//test:norace
func TestKillDuringRewrite(t *testing.T) {
	path := newPath(t)
	choose := rand.New(rand.NewPCG(3, 4))
	var killed []string
	calls, every := 0, 40
	db := open(t, path, Options{OverlayBytes: 1 << 30, Yield: func() {
		if calls++; calls%every != 1 {
			return
		}
		dir := t.TempDir()
		for _, suffix := range []string{"", compactSuffix} {
			b, err := os.ReadFile(path + suffix)
			if suffix == compactSuffix && os.IsNotExist(err) {
				continue
			}
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "index"+suffix), b, 0o600))
		}
		killed = append(killed, filepath.Join(dir, "index"))
	}})
	db.limits.rewrite = 64 << 10
	db.limits.bytes = 16 << 10 // several transactions
	m := model{}
	first := scattered(choose, 4_000)
	m.apply(first)
	db.Apply(at(1), first)
	require.NoError(t, db.Checkpoint())
	killed = nil
	second := scattered(choose, 4_000)
	db.Apply(at(2), second)
	require.NoError(t, db.Checkpoint())
	require.Greater(t, len(killed), 3)
	now := m.clone()
	now.apply(second)
	for _, path := range killed {
		require.FileExists(t, path+compactSuffix)
		db := open(t, path, Options{})
		require.NoFileExists(t, path+compactSuffix)
		require.Equal(t, at(1), db.State())
		requireModel(t, m, db)
		db.Apply(at(2), second)
		require.NoError(t, db.Checkpoint())
		requireModel(t, now, db)
		require.NoError(t, db.Close())
	}

	killed, every = nil, 200
	require.NoError(t, db.Compact(t.Context(), nil))
	require.Greater(t, len(killed), 2)
	for _, path := range killed {
		require.FileExists(t, path+compactSuffix)
		db := open(t, path, Options{})
		require.Equal(t, at(2), db.State())
		requireModel(t, now, db)
		require.NoError(t, db.Compact(t.Context(), nil))
		requireModel(t, now, db)
		require.NoError(t, db.Close())
	}
}

// If no new file can be written, the old one is changed in place, and the rewrite is
// not retried.
//
//test:norace
func TestFoldWithoutSecondFile(t *testing.T) {
	path := newPath(t)
	choose := rand.New(rand.NewPCG(5, 6))
	var texts []string
	db := open(t, path, Options{OverlayBytes: 1 << 30, Logger: logline.New(slog.LevelDebug, func(message string) { texts = append(texts, message) })})
	db.limits.rewrite = 64 << 10
	require.NoError(t, os.MkdirAll(filepath.Join(path+compactSuffix, "in the way"), 0o700))
	m := model{}
	for n := range uint64(3) {
		batch := scattered(choose, 4_000)
		m.apply(batch)
		db.Apply(at(n+1), batch)
		require.NoError(t, db.Checkpoint())
		requireModel(t, m, db)
	}
	require.Len(t, texts, 1)
	require.Contains(t, texts[0], "changed in place")
	require.NoError(t, os.RemoveAll(path+compactSuffix))
	require.NoError(t, db.Close())
	db = open(t, path, Options{})
	require.Equal(t, at(3), db.State())
	requireModel(t, m, db)
}

// The new file name must be durable before a fold is done: otherwise the old file
// could reappear after the fold was relied on.
//
//test:norace
func TestNameOfTheNewFileIsSynced(t *testing.T) {
	path := newPath(t)
	choose := rand.New(rand.NewPCG(7, 8))
	db := open(t, path, Options{OverlayBytes: 1 << 30})
	db.limits.rewrite = 64 << 10
	cause := errors.New("no power")
	failing := true
	synced := 0
	db.syncDir = func(string) error {
		if failing {
			return cause
		}
		synced++
		return nil
	}
	m := model{}
	batch := scattered(choose, 4_000)
	m.apply(batch)
	db.Apply(at(1), batch)
	for range 2 {
		require.ErrorIs(t, db.Checkpoint(), cause)
		requireModel(t, m, db)
	}
	require.ErrorIs(t, db.Compact(context.Background(), nil), cause)
	failing = false
	require.NoError(t, db.Checkpoint())
	require.Positive(t, synced)
	requireModel(t, m, db)
	failing = true
	require.ErrorIs(t, db.Compact(context.Background(), nil), cause)
	requireModel(t, m, db)
	failing = false
	batch = scattered(choose, 10)
	m.apply(batch)
	db.Apply(at(2), batch)
	synced = 0
	require.NoError(t, db.Close())
	require.Positive(t, synced)
	db = open(t, path, Options{})
	require.Equal(t, at(2), db.State())
	requireModel(t, m, db)
}

// If there is no address space for a second file of the possible size, the first one
// is changed in place, and its address space stays.
//
//test:norace
func TestFoldWithoutAddressSpace(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("no size is as large")
	}
	path := newPath(t)
	choose := rand.New(rand.NewPCG(9, 10))
	var texts []string
	db := open(t, path, Options{OverlayBytes: 1 << 30, Logger: logline.New(slog.LevelDebug, func(message string) { texts = append(texts, message) })})
	db.limits.rewrite = 64 << 10
	room, most := db.mapped, uint64(1)<<47
	db.mapped = int(most)
	m := model{}
	for n := range uint64(2) {
		batch := scattered(choose, 4_000)
		m.apply(batch)
		db.Apply(at(n+1), batch)
		require.NoError(t, db.Checkpoint())
		requireModel(t, m, db)
		require.Equal(t, path, db.bolt.Path())
	}
	require.EqualValues(t, most, db.mapped)
	require.Len(t, texts, 1)
	require.ErrorIs(t, db.Compact(context.Background(), nil), syscall.ENOMEM)
	db.mapped, db.rewriteAfter = room, time.Time{}
	batch := scattered(choose, 4_000)
	m.apply(batch)
	db.Apply(at(3), batch)
	require.NoError(t, db.Checkpoint())
	require.Equal(t, path+compactSuffix, db.bolt.Path(), "it is used when there is some again")
	requireModel(t, m, db)
}

// Replaced files that are still read take address space: their number is limited.
//
//test:norace
func TestFewFilesAreReadAtOnce(t *testing.T) {
	db := open(t, newPath(t), Options{OverlayBytes: 1 << 30})
	db.limits.rewrite = 16 << 10
	choose := rand.New(rand.NewPCG(11, 12))
	m := model{}
	var held []pinned
	release := func() {
		for _, p := range held {
			p.Close()
		}
		held = nil
	}
	t.Cleanup(release)
	for n := range uint64(3 * maxUnread) {
		batch := scattered(choose, 300)
		m.apply(batch)
		db.Apply(at(n+1), batch)
		require.NoError(t, db.Checkpoint())
		held = append(held, pinned{db.Snapshot(), m.clone()})
		require.LessOrEqual(t, db.unread.Load(), int32(maxUnread))
	}
	require.EqualValues(t, maxUnread, db.unread.Load())
	for _, p := range held {
		require.NoError(t, p.as.checkAll(p.Snapshot))
	}
	release()
	require.Eventually(t, func() bool { return db.unread.Load() == 0 }, 2*time.Minute, time.Millisecond)
	file := db.bolt
	db.Apply(at(100), scattered(choose, 12_000))
	require.NoError(t, db.Checkpoint())
	require.NotSame(t, file, db.bolt)
}

// Running reads finish while the index is closed.
func TestCloseWhileGetting(t *testing.T) {
	for range 20 {
		db := open(t, newPath(t), Options{})
		db.Apply(at(1), batchOf(0, 100, same("v")))
		require.NoError(t, db.Checkpoint())
		var reading sync.WaitGroup
		for range 8 {
			reading.Go(func() {
				for {
					if _, _, err := db.Get([]byte(key(50))); err != nil {
						if !errors.Is(err, backend.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		require.NoError(t, db.Close())
		reading.Wait()
	}
}

// Where no file can take the name of an open one, the replaced index has another name until its last reader is done. What a
// crash left of it is removed, and a file that grew to its mapping is as large as its pages when it was closed.
func TestReplacedWhereFilesKeepTheirNames(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{OverlayBytes: 1 << 30})
	db.system = mappedFiles{grow: true, keepName: true}
	aside := func() []string {
		names, err := filepath.Glob(path + asideSuffix + "*")
		require.NoError(t, err)
		return names
	}
	for n := uint64(1); n <= 3; n++ {
		db.Apply(at(n), batchOf(0, 100, same(fmt.Sprint("value ", n))))
		require.NoError(t, db.Checkpoint())
		before := db.Snapshot()
		t.Cleanup(before.Close)
		require.NoError(t, db.Compact(t.Context(), nil))
		require.Len(t, aside(), 1, "it is read")
		value, found, err := before.Get([]byte(key(0)))
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, fmt.Sprint("value ", n), string(value))
		before.Close()
		require.EventuallyWithT(t, func(c *assert.CollectT) { require.Empty(c, aside()) }, time.Minute, time.Millisecond)
	}
	require.NoError(t, os.Truncate(path, 1<<30))
	require.Less(t, db.Size(), int64(1<<20))
	require.NoError(t, db.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1<<20))

	require.NoError(t, os.WriteFile(path+asideSuffix+"7", []byte("left by a crash"), 0o600))
	db = open(t, path, Options{})
	require.Empty(t, aside())
	require.Equal(t, at(3), db.State())
	db.system.grow = true
	require.NoError(t, os.Truncate(path, 1<<30))
	for damage, err := range db.CheckSums() {
		require.NoError(t, err)
		t.Error("damage that is none", damage)
	}
}
