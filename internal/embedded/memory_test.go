package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A store in memory packs, verifies, collects and is backed up like one on
// disk, without files.
func TestInMemory(t *testing.T) {
	here, scratch := t.TempDir(), t.TempDir()
	t.Chdir(here)
	t.Setenv("TMPDIR", scratch)
	o := Options{InMemory: true, SegmentSize: 4 << 10, OverlayBytes: 1 << 10}
	e := fill(t, "not used", o, 100)
	require.Empty(t, findings(t, e, true))

	erased := message(100).Records[0].(*structure.Block).ID
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindBlock, Content: erased}}}, backend.Options{})
	require.NoError(t, err)
	for _, pack := range []backend.PackOptions{{}, {All: true}, {All: true, Dense: true}} {
		report, err := e.Pack(background, pack)
		require.NoError(t, err)
		require.Positive(t, report.After)
		require.Empty(t, findings(t, e, true))
	}
	report, err := e.Collect(background, backend.CollectOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 1, report.Erased)
	require.Empty(t, report.Removed)
	there, err := e.Has(background, []content.ID{erased})
	require.NoError(t, err)
	require.Equal(t, []bool{false}, there)
	require.Empty(t, findings(t, e, true))
	require.EqualValues(t, 101, headOf(t, e))
	stats, err := e.Stats(background)
	require.NoError(t, err)
	require.Positive(t, stats.IndexBytes)
	require.Greater(t, stats.StoredBytes, stats.IndexBytes)

	for _, dir := range []string{here, scratch} {
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, "files of a store in memory")
	}
	backup := filepath.Join(t.TempDir(), "backup")
	_, err = e.Backup(background, backup, backend.BackupOptions{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	copied := filepath.Join(t.TempDir(), "restored")
	_, err = Restore(background, backup, copied, RestoreOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 101, headOf(t, reopen(t, copied, Options{})))
}

// Stores in memory share nothing, and cannot be opened again.
func TestStoresInMemoryAreSeparate(t *testing.T) {
	a, b := fill(t, "", Options{InMemory: true}, 3), fill(t, "", Options{InMemory: true}, 5)
	requireMessages(t, a, 3)
	requireMessages(t, b, 5)
	require.NotEqual(t, a.StoreID(), b.StoreID())
	require.NoError(t, a.Close())
	requireMessages(t, b, 5)
	require.NoError(t, b.Close())
	for _, o := range []Options{{InMemory: true, MustExist: true}, {InMemory: true, ReadOnly: true}} {
		_, err := Open(background, "", o)
		require.ErrorIs(t, err, backend.ErrNotFound)
	}
}

func headOf(t *testing.T, e *Engine) uint64 {
	t.Helper()
	head, err := e.Head(background)
	require.NoError(t, err)
	return head.Number
}
