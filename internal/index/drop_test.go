package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// tenth is an entry of one of the tables a to e.
func tenth(i int) Entry {
	k := binary.BigEndian.AppendUint64([]byte{"abcde"[i%5]}, uint64(i)*0x9e3779b97f4a7c15)
	return Entry{Key: k, Value: fmt.Appendf(nil, "value %d", i)}
}

// Dropped entries are gone and no others, also after an interruption; a
// snapshot keeps its state.
//
//test:norace
func TestDrop(t *testing.T) {
	for _, stopAt := range []int{0, 500, 2500} {
		path := newPath(t)
		db := open(t, path, Options{OverlayBytes: 1 << 20})
		db.limits = limits{leaves: 16, bytes: 8 << 10, rewrite: never}
		m := model{}
		const n = 10000
		for i := range n {
			batch := []Entry{tenth(i)}
			m.apply(batch)
			db.Apply(at(uint64(i+1)), batch)
		}
		before := db.Snapshot()
		defer before.Close()
		was := m.clone()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		seen := 0
		gone := map[string]bool{}
		spare := func(key, value []byte) bool {
			require.Contains(t, "bd", string(key[:1]), "other tables are not read")
			if seen++; seen == stopAt {
				cancel()
			}
			drop := value[len(value)-1] != '3'
			if drop {
				gone[string(key)] = true
			}
			return drop
		}
		size := db.Size()
		err := db.Drop(ctx, []byte("bd"), spare)
		if stopAt == 0 {
			require.NoError(t, err)
			require.Len(t, gone, 3000) // half of d stays
		} else {
			require.ErrorIs(t, err, context.Canceled)
			require.NotEmpty(t, gone)
		}
		for k := range gone {
			delete(m, k)
		}
		check := func(db *DB) {
			s := db.Snapshot()
			defer s.Close()
			require.NoError(t, m.checkScan(s, nil, nil))
			for i := 0; i < n; i += 7 {
				require.NoError(t, m.checkGet(db, string(tenth(i).Key)))
			}
		}
		check(db)
		require.NoError(t, was.checkScan(before, nil, nil))
		before.Close()
		require.LessOrEqual(t, db.Size(), size+1<<20)
		// The index can be used as before.
		for i := range n {
			if i%3 == 0 {
				batch := []Entry{tenth(i)}
				m.apply(batch)
				db.Apply(at(uint64(n+i)), batch)
			}
		}
		check(db)
		require.NoError(t, db.Close())
		db = open(t, path, Options{})
		check(db)
		require.NoError(t, db.Close())
		for d, err := range db.CheckSums() {
			require.NoError(t, err)
			t.Errorf("%+v", d)
		}
	}
}

func TestDropOfAClosedIndex(t *testing.T) {
	db := open(t, newPath(t), Options{})
	require.NoError(t, db.Close())
	require.Error(t, db.Drop(context.Background(), []byte("a"), func([]byte, []byte) bool { return true }))
}
