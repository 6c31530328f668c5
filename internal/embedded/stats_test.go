package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// StoredBytes is the size of every file below the store's directory.
func TestStatsCountEveryFile(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 100)
	defer func() { require.NoError(t, e.Close()) }()
	write := func(name string, size int) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	}
	empty, err := e.Stats(background)
	require.NoError(t, err)
	write(searchFile, 5000)
	write(searchFile+"-wal", 300)
	write(filepath.Join(journalDir, "0000000001.seg.7"+cutSuffix), 20)
	write(filepath.Join("exports", "a.md"), 1)
	before, err := e.Stats(background)
	require.NoError(t, err)
	require.Equal(t, empty.OtherBytes+5321, before.OtherBytes)
	require.Equal(t, empty.StoredBytes+5321, before.StoredBytes)
	write(indexFile+".before-repair", 40)
	after, err := e.Stats(background)
	require.NoError(t, err)
	require.Equal(t, before.IndexBytes+40, after.IndexBytes)
	require.Equal(t, before.StoredBytes+40, after.StoredBytes)
	require.Equal(t, after.StoredBytes, after.IndexBytes+after.OtherBytes+uint64(e.journal.Size()))
}

func TestStatsCountUnpackedSegments(t *testing.T) {
	e := openPacked(t, t.TempDir(), 100)
	defer func() { require.NoError(t, e.Close()) }()
	stats, err := e.Stats(background)
	require.NoError(t, err)
	require.Equal(t, uint64(e.journal.Size()), stats.UnpackedBytes)
	_, err = e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	packed, err := e.Stats(background)
	require.NoError(t, err)
	require.Less(t, packed.UnpackedBytes, uint64(100), "an empty segment is left")
	require.Equal(t, stats.Counts(), packed.Counts())
}
