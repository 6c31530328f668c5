package index

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Deleted data is in no byte of a compacted file. Current entries read the same
// as before, and so do snapshots.
//
//test:norace
func TestCompact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	db, err := Open(path, Options{OverlayBytes: 1 << 20})
	require.NoError(t, err)
	db.limits.rewrite = never
	key := func(i int) []byte { return fmt.Appendf(nil, "key %06d", i) }
	for i := range 20000 {
		db.Apply(State{Number: uint64(i + 1)}, []Entry{{Key: key(i), Value: fmt.Appendf(nil, "secret %d", i%2)}})
	}
	for i := range 2000 {
		db.Apply(State{Number: 20000}, []Entry{{Key: fmt.Appendf(nil, "key of a name %d", i), Value: bytes.Repeat([]byte{1}, 40)}})
	}
	require.NoError(t, db.Checkpoint())
	before := db.Snapshot()
	for i := range 2000 {
		db.Apply(State{Number: 20000}, []Entry{{Key: fmt.Appendf(nil, "key of a name %d", i)}})
	}
	for i := 1; i < 20000; i += 2 {
		db.Apply(State{Number: uint64(20000 + i)}, []Entry{{Key: key(i)}})
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, db.Compact(canceled, nil), context.Canceled)
	size := db.Size()
	for range 2 {
		require.NoError(t, db.Compact(context.Background(), nil))
		require.Less(t, db.Size(), size)
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.False(t, bytes.Contains(b, []byte("secret 1")))
		require.False(t, bytes.Contains(b, []byte("key of a name")), "bounds of leaves are rebuilt")
		require.Zero(t, leafEntries(t, db), "all are in the sealed table")
	}
	for i := range 20000 {
		_, ok, err := db.Get(key(i))
		require.NoError(t, err)
		require.Equal(t, i%2 == 0, ok)
		if i%100 < 2 {
			v, ok, err := before.Get(key(i))
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, fmt.Sprintf("secret %d", i%2), string(v))
		}
	}
	db.Apply(State{Number: 50000}, []Entry{{Key: []byte("later"), Value: []byte("v")}})
	before.Close()
	require.NoError(t, db.Close())
	db, err = Open(path, Options{})
	require.NoError(t, err)
	require.EqualValues(t, 50000, db.State().Number)
	v, ok, err := db.Get([]byte("later"))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "v", string(v))
	require.NoError(t, db.Close())
	for d, err := range db.CheckSums() {
		require.NoError(t, err)
		t.Errorf("%+v", d)
	}
}

// Compact writes a small file in small pages, and a large one in those of the machine. Both can be written to afterwards. They open
// with one meta page, and not without any.
//
//test:norace
func TestSizesOfPages(t *testing.T) {
	machine := os.Getpagesize()
	if machine == smallPage {
		t.Skip("the pages of this machine are small")
	}
	path, m := newPath(t), model{}
	db := open(t, path, Options{})
	number := uint64(0)
	add := func(from, to int) {
		batch := batchOf(from, to, func(i int) string { return fmt.Sprint(i, " ", number) })
		m.apply(batch)
		number++
		db.Apply(at(number), batch)
		require.NoError(t, db.Checkpoint())
	}
	compacted := func(size int, most int64) {
		require.NoError(t, db.Compact(t.Context(), nil))
		require.Less(t, db.Size(), most)
		add(0, 50)
		require.NoError(t, db.Close())
		clean, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, size, pageSize(clean))
		for _, lost := range [][]int{{0}, {size}, {0, size}} {
			bad := slices.Clone(clean)
			for _, at := range lost {
				clear(bad[at:][:pageHeader+metaLen])
			}
			require.NoError(t, os.WriteFile(path, bad, 0o600))
			damaged, err := Open(path, Options{ReadOnly: true})
			if len(lost) == 2 {
				require.ErrorIs(t, err, ErrUnusable)
				continue
			}
			require.NoError(t, err)
			require.NoError(t, damaged.Close())
		}
		require.NoError(t, os.WriteFile(path, clean, 0o600))
		db = open(t, path, Options{})
		requireModel(t, m, db)
	}
	add(0, 100)
	compacted(smallPage, int64(3*machine))
	add(0, 250_000)
	require.Greater(t, db.Size(), int64(smallFile))
	compacted(machine, smallFile)
	compacted(smallPage, smallFile) // what it replaces is small now
}
