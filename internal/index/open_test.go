package index

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// small creates a closed index with a few hundred entries.
func small(t testing.TB) (path string, m model) {
	path = newPath(t)
	db := open(t, path, Options{})
	m = model{}
	batch := batchOf(0, 400, same("some value"))
	m.apply(batch)
	db.Apply(at(1), batch)
	require.NoError(t, db.Close())
	return path, m
}

func TestUnusable(t *testing.T) {
	bolt := func(fn func(tx *bbolt.Tx) error) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			db, err := bbolt.Open(path, 0o600, nil)
			require.NoError(t, err)
			require.NoError(t, db.Update(fn))
			require.NoError(t, db.Close())
		}
	}
	put := func(bucket, key []byte, change func(v []byte) []byte) func(t *testing.T, path string) {
		return bolt(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket)
			return b.Put(key, change(bytes.Clone(b.Get(key))))
		})
	}
	tests := map[string]func(t *testing.T, path string){
		"cut by half":     func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 16<<10)) },
		"cut to a page":   func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 4<<10)) },
		"cut to one byte": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 1)) },
		"zeros": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, make([]byte, 64<<10), 0o600))
		},
		"text": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("not an index\n"), 5000), 0o600))
		},
		"other buckets": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			bolt(func(tx *bbolt.Tx) error {
				_, err := tx.CreateBucket([]byte("users"))
				return err
			})(t, path)
		},
		"one bucket": bolt(func(tx *bbolt.Tx) error { return tx.DeleteBucket(metaBucket) }),
		"no leaves":  bolt(func(tx *bbolt.Tx) error { return tx.DeleteBucket(leavesBucket) }),
		"no state":   bolt(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(stateKey) }),
		"damaged state": put(metaBucket, stateKey, func(v []byte) []byte {
			v[20]++
			return v
		}),
		"short state": put(metaBucket, stateKey, func(v []byte) []byte { return v[:40] }),
		"other version": put(metaBucket, stateKey, func(v []byte) []byte {
			v[0]++
			return resealState(v)
		}),
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			path, _ := small(t)
			damage(t, path)
			before, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, readOnly := range []bool{true, false} {
				_, err := Open(path, Options{ReadOnly: readOnly})
				require.ErrorIs(t, err, ErrUnusable)
			}
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, bytes.Equal(before, after), "an unusable file was written to")
		})
	}
}

// resealState corrects the checksum of a state.
func resealState(v []byte) []byte {
	return binary.LittleEndian.AppendUint32(v[:40], crc32.Checksum(v[:40], castagnoli))
}

func TestStateGolden(t *testing.T) {
	db := open(t, newPath(t), Options{})
	s := State{Number: 0x0102030405060708, ID: 0x3132333435363738, Since: 0x4142434445464748, Segment: 0x11121314, Offset: 0x2122232425262728}
	for i := range s.Store {
		s.Store[i] = 0xa0 + byte(i)
	}
	for i := range s.Counts {
		s.Counts[i] = 0xc0 + uint64(i)
	}
	db.Apply(s, nil)
	require.NoError(t, db.Checkpoint())
	require.NoError(t, db.bolt.View(func(tx *bbolt.Tx) error {
		golden(t, "state", tx.Bucket(metaBucket).Get(stateKey))
		var again State
		got, err := again.load(tx)
		require.NoError(t, err)
		require.Nil(t, got)
		require.Equal(t, s, again)
		return nil
	}))
}

func TestEmptyFileIsNew(t *testing.T) {
	path := newPath(t)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	db := open(t, path, Options{})
	require.Equal(t, State{}, db.State())
	requireModel(t, model{}, db)
}

// A process that dies after bbolt created the file, but before it has contents, leaves
// a file that counts as missing.
func TestKillBeforePrepare(t *testing.T) {
	path := newPath(t)
	b, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	_, err = Open(path, Options{ReadOnly: true})
	require.ErrorIs(t, err, ErrUnusable)
	requireModel(t, model{}, open(t, path, Options{}))
}

func TestReadOnly(t *testing.T) {
	path, m := small(t)
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	db := open(t, path, Options{ReadOnly: true, OverlayBytes: 100})
	require.Equal(t, at(1), db.State())
	requireModel(t, m, db)

	// Commits that the file lacks are held in memory, however many.
	batch := batchOf(300, 600, same("newer"))
	m.apply(batch)
	db.Apply(at(2), batch)
	require.NoError(t, db.Throttle())
	requireModel(t, m, db)
	require.ErrorIs(t, db.Checkpoint(), backend.ErrReadOnly)
	requireModel(t, m, db)
	require.NoError(t, db.Close())
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
}

func TestReadOnlyWithoutFile(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{ReadOnly: true})
	m := model{}
	batch := batchOf(0, 50, same("v"))
	m.apply(batch)
	db.Apply(at(1), batch)
	requireModel(t, m, db)
	require.NoError(t, db.Close())
	require.NoFileExists(t, path)
}

// Without a file everything stays in memory, and file operations do nothing.
func TestInMemory(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{InMemory: true, OverlayBytes: 100})
	m := model{}
	for n := range uint64(5) {
		batch := batchOf(int(n)*40, int(n)*40+100, same(fmt.Sprint("value ", n)))
		m.apply(batch)
		db.Apply(at(n+1), batch)
		require.NoError(t, db.Throttle())
		require.NoError(t, db.Checkpoint())
		require.NoError(t, db.Compact(t.Context(), nil))
		require.Equal(t, at(n+1), db.State())
		requireModel(t, m, db)
	}
	require.Positive(t, db.Size())
	for damage, err := range db.CheckSums() {
		require.NoError(t, err)
		t.Error("damage in memory:", damage)
	}
	require.NoError(t, db.Close())
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, State{}, open(t, path, Options{InMemory: true}).State())
}

func TestLocked(t *testing.T) {
	path, _ := small(t)
	open(t, path, Options{})
	_, err := Open(path, Options{})
	require.ErrorIs(t, err, backend.ErrLocked)
	require.NotErrorIs(t, err, ErrUnusable)
}

// An inaccessible index is not reported as unusable.
func TestUnreachable(t *testing.T) {
	_, err := Open(filepath.Join(t.TempDir(), "missing", "index.bolt"), Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, ErrUnusable)
}

// Opening takes less address space if little is available.
func TestLittleAddressSpace(t *testing.T) {
	if strconv.IntSize < 64 || runtime.GOOS == "windows" {
		t.Skip("needs more address space than there is, and a file that does not grow with it")
	}
	path, m := small(t)
	free, err := checkBefore(path)
	require.NoError(t, err)
	most := int64(math.MaxInt64) >> 15 &^ (1<<30 - 1)
	db := &DB{path: path, limits: defaultLimits, active: newOverlay(), mapped: int(most), syncDir: vfs.OS().SyncDir}
	db.idle.L = &db.mu
	db.opt = Options{OverlayBytes: 1 << 20, Durable: func(uint64) error { return nil }, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, db.openBolt(free))
	defer func() { require.NoError(t, db.Close()) }()
	require.Less(t, db.mapped, int(most))
	requireModel(t, m, db)
	batch := batchOf(100, 900, same("more"))
	m.apply(batch)
	db.Apply(at(2), batch)
	require.NoError(t, db.Checkpoint())
	requireModel(t, m, db)
}

func TestMapSize(t *testing.T) {
	require.GreaterOrEqual(t, mapSize(0), minMapSize)
	for _, used := range []uint64{1, 1 << 20, 100 << 20} {
		require.GreaterOrEqual(t, uint64(mapSize(used)), 2*used)
	}
	if strconv.IntSize == 64 {
		used := leastMapped64()
		require.GreaterOrEqual(t, uint64(mapSize(used)), 2*used)
		require.Positive(t, mapSize(math.MaxUint64/4))
	}
}

// The file is little larger than its contents.
func TestSize(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{})
	require.Less(t, db.Size(), int64(1<<20))
	db.Apply(at(1), batchOf(0, 20_000, same("a value of twenty bytes")))
	require.NoError(t, db.Checkpoint())
	require.Less(t, db.Size(), int64(4<<20))
	require.Zero(t, (&DB{path: path + "x"}).Size())
}
