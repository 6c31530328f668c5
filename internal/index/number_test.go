package index

import (
	"encoding/binary"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
)

// A reader that sees the number of a commit finds its entries.
func TestReadersSeeEntriesOfNumber(t *testing.T) {
	looks := campaign.Rounds(200)
	db, err := Open(filepath.Join(t.TempDir(), "index"), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	keyOf := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	var enough atomic.Bool
	var looked atomic.Uint64 // the last number that was looked at
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := uint64(1); !enough.Load(); n++ {
			if err := db.Throttle(); err != nil {
				t.Error(err)
				return
			}
			for n > looked.Load()+1000 && !enough.Load() { // the rest would only be folded
				runtime.Gosched()
			}
			db.Apply(State{Number: n}, []Entry{{Key: keyOf(n), Value: keyOf(n)}})
		}
	})
	defer writing.Wait()
	defer enough.Store(true)
	seen := uint64(0)
	for look := 0; look < looks && !t.Failed(); {
		n := db.Number()
		if n == seen {
			continue
		}
		seen = n
		looked.Store(n)
		look++
		_, ok, err := db.Get(keyOf(n))
		require.NoError(t, err)
		require.True(t, ok, n)
	}
}
