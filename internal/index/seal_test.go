package index

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/sealed"
)

// leafEntries returns the number of entries in leaves, deletions included.
func leafEntries(t *testing.T, db *DB) (n int) {
	t.Helper()
	require.NoError(t, db.base.read(func(c *bbolt.Cursor) error {
		for k, v := c.First(); k != nil; k, v = c.Next() {
			l, err := readLeaf(db.pages, k, v)
			require.NoError(t, err)
			for entries := l.cursor(); entries.next(); n++ {
			}
		}
		return nil
	}))
	return n
}

// leaves returns the value of each key in leaves; "deleted" for deletions.
func leaves(t *testing.T, db *DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, db.base.read(func(c *bbolt.Cursor) error {
		for k, v := c.First(); k != nil; k, v = c.Next() {
			l, err := readLeaf(db.pages, k, v)
			require.NoError(t, err)
			for entries := l.cursor(); entries.next(); {
				if all[string(entries.key)] = string(entries.value); entries.value == nil {
					all[string(entries.key)] = "deleted"
				}
			}
		}
		return nil
	}))
	return all
}

// Leaves have only what differs from the sealed table, however they are written.
func TestOverSealedTable(t *testing.T) {
	for _, rewrite := range []uint64{0, never} {
		t.Run(fmt.Sprint(rewrite), func(t *testing.T) {
			early := func(key []byte) bool { return key[0] == 'e' }
			db := open(t, newPath(t), Options{Early: early})
			db.limits.rewrite = rewrite
			m := model{}
			apply := func(n uint64, batch ...Entry) {
				db.Apply(at(n), batch)
				m.apply(batch)
				require.NoError(t, db.Checkpoint())
				requireModel(t, m, db)
			}
			entry := func(k, v string) Entry { return Entry{Key: []byte(k), Value: []byte(v)} }
			apply(1, entry("a", "1"), entry("b", "2"), entry("e1", "3"), entry("e2", ""))
			require.NoError(t, db.Compact(t.Context(), nil))
			requireModel(t, m, db)
			require.Empty(t, leaves(t, db))
			apply(2, Entry{Key: []byte("a")}, Entry{Key: []byte("none")}, entry("e1", "4"), entry("e3", "5"), Entry{Key: []byte("e2")})
			require.Equal(t, map[string]string{"a": "deleted", "e1": "4", "e3": "5", "e2": "deleted"}, leaves(t, db))
			apply(3, entry("a", "6"), Entry{Key: []byte("e3")})
			require.Equal(t, map[string]string{"a": "6", "e1": "4", "e2": "deleted"}, leaves(t, db))
			apply(4, Entry{Key: []byte("a")}, entry("e2", "7"))
			require.Equal(t, map[string]string{"a": "deleted", "e1": "4", "e2": "7"}, leaves(t, db))
			require.NoError(t, db.Close())
			db = open(t, db.path, Options{Early: early})
			requireModel(t, m, db)
			require.NoError(t, db.Compact(t.Context(), nil))
			requireModel(t, m, db)
			require.Empty(t, leaves(t, db))
		})
	}
}

// What a drop removes from leaves stays hidden if the sealed table has it.
func TestDropOverSealedTable(t *testing.T) {
	db := open(t, newPath(t), Options{})
	spare := func(_, value []byte) bool { return string(value) == "spare" }
	db.Apply(at(1), []Entry{{Key: []byte("ha"), Value: []byte("old")}, {Key: []byte("hb"), Value: []byte("keep")}, {Key: []byte("hc"), Value: []byte("spare")}})
	require.NoError(t, db.Compact(t.Context(), nil))
	db.Apply(at(2), []Entry{{Key: []byte("ha"), Value: []byte("spare")}, {Key: []byte("hd"), Value: []byte("spare")}})
	for range 2 {
		require.NoError(t, db.Drop(t.Context(), []byte("h"), spare))
		requireModel(t, model{"hb": "keep", "hc": "spare"}, db) // a drop does not read the table
		require.Equal(t, map[string]string{"ha": "deleted"}, leaves(t, db))
	}
	require.NoError(t, db.Compact(t.Context(), func(key, value []byte) []byte {
		if spare(key, value) {
			return nil
		}
		return value
	}))
	requireModel(t, model{"hb": "keep"}, db)
	require.Empty(t, leaves(t, db))
}

func TestIsLoose(t *testing.T) {
	db := open(t, newPath(t), Options{})
	db.limits.loose = 64 << 10
	for n, want := range []bool{false, true} {
		require.False(t, db.IsLoose())
		for k := range 10 {
			from := 10000*n + 1000*k
			db.Apply(at(uint64(from+1)), batchOf(from, from+100*(1+9*n), func(i int) string { return fmt.Sprint(i * i) }))
		}
		require.NoError(t, db.Checkpoint())
		require.Equal(t, want, db.IsLoose())
		require.NoError(t, db.Compact(t.Context(), nil))
	}
	require.False(t, db.IsLoose())
}

// Damage of the sealed table is an error, of its directory when the index is opened.
//
//test:norace
func TestDamagedTable(t *testing.T) {
	path := newPath(t)
	db := open(t, path, Options{})
	m := model{}
	for n := range 5 {
		batch := batchOf(1000*n, 1000*n+1000, func(i int) string { return fmt.Sprint(i * i) })
		db.Apply(at(uint64(n+1)), batch)
		m.apply(batch)
	}
	require.NoError(t, db.Compact(t.Context(), nil))
	requireModel(t, m, db)
	require.NoError(t, db.Close())
	change := func(key []byte) {
		b, err := bbolt.Open(path, 0o600, nil)
		require.NoError(t, err)
		require.NoError(t, b.Update(func(tx *bbolt.Tx) error {
			v := append([]byte(nil), tx.Bucket(sealedBucket).Get(key)...)
			v[len(v)/2] ^= 1
			return tx.Bucket(sealedBucket).Put(key, v)
		}))
		require.NoError(t, b.Close())
	}
	change(extentKey(0))
	db = open(t, path, Options{})
	s := db.Snapshot()
	err := m.checkAll(s)
	s.Close()
	require.ErrorContains(t, err, sealed.ErrDamaged.Error())
	require.NotErrorIs(t, err, errWrong)
	require.Error(t, db.Compact(t.Context(), nil), "the damage is not copied")
	require.NoError(t, db.Close())
	change(directoryKey)
	_, err = Open(path, Options{})
	require.ErrorIs(t, err, ErrUnusable)
}
