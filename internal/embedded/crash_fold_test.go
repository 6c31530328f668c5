package embedded

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/vfs/crashfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A large checkpoint takes several transactions. A crash between them leaves an
// index with entries that its state does not account for.
//
//test:norace
func TestCrashBetweenTransactionsOfCheckpoint(t *testing.T) {
	for seed := range uint64(campaign.Rounds(3)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			choose := rand.New(rand.NewPCG(seed, 5))
			s := newCrashStore(t, t.TempDir(), choose, crashfs.New(), Options{OverlayBytes: 1 << 30})
			for range 30 {
				require.NoError(t, s.commit(backend.Normal))
			}
			require.NoError(t, s.checkpoint(true))
			before := s.saved
			for range 40 {
				require.NoError(t, s.commit(backend.Normal))
			}
			require.NoError(t, s.checkpoint(true))
			after := s.saved
			s.stop()
			come := newcomers(t, before, after)
			require.Greater(t, len(come), 20)
			for _, n := range []int{choose.IntN(len(come)), choose.IntN(len(come)), len(come)} {
				s.saved = withEntries(t, before, come[:n])
				found := s.outcome(crashfs.KeepNone(), false, indexFromBefore)
				found.verify()
				found.outlive(choose)
				found.stop()
			}
		})
	}
}

// openCopy opens an index with the given bytes.
func openCopy(t *testing.T, b []byte) (*index.DB, string) {
	path := filepath.Join(t.TempDir(), indexFile)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	db, err := index.Open(path, index.Options{})
	require.NoError(t, err)
	return db, path
}

// newcomers returns in order the entries that a checkpoint between two indexes
// may write before its last transaction.
func newcomers(t *testing.T, before, after []byte) (come []index.Entry) {
	old, _ := openCopy(t, before)
	defer old.Close()
	db, _ := openCopy(t, after)
	defer db.Close()
	s := db.Snapshot()
	defer s.Close()
	for e, err := range s.Scan(nil, nil) {
		require.NoError(t, err)
		was, _, err := old.Get(e.Key)
		require.NoError(t, err)
		if keys.Early(e.Key) && was == nil {
			come = append(come, index.Entry{Key: bytes.Clone(e.Key), Value: append([]byte{}, e.Value...)})
		}
	}
	return come
}

// withEntries returns the index with entries added that its state does not
// account for.
func withEntries(t *testing.T, before []byte, entries []index.Entry) []byte {
	db, path := openCopy(t, before)
	db.Apply(db.State(), entries)
	require.NoError(t, db.Close())
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}
