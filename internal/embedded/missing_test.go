package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// TestJournalIsMissing removes the journal, or its directory, but keeps the index.
func TestJournalIsMissing(t *testing.T) {
	stores := map[string]string{
		"one segment": made(t, Options{}, 5),
		"segments":    made(t, Options{SegmentSize: 4 << 10, NoPacking: true}, 60),
		"packed":      packedStore(t, backend.PackOptions{All: true}),
	}
	for name, dir := range stores {
		journal := filepath.Join(dir, journalDir)
		for _, take := range []func() error{
			func() error {
				for _, file := range namesIn(t, journal) {
					require.NoError(t, os.Remove(filepath.Join(journal, file)))
				}
				return nil
			},
			func() error { return os.Remove(journal) },
		} {
			require.NoError(t, take())
			got, err := IsStore(dir)
			require.NoError(t, err)
			require.True(t, got, name)
			for _, o := range []Options{{}, {MustExist: true}, {ReadOnly: true}} {
				_, err := Open(background, dir, o)
				require.ErrorIs(t, err, backend.ErrCorrupt, name)
				require.NotErrorIs(t, err, backend.ErrNotFound, name)
				require.ErrorContains(t, err, "commits are lost", name)
			}
			_, err = Restore(background, dir, filepath.Join(t.TempDir(), "to"), RestoreOptions{})
			require.ErrorIs(t, err, backend.ErrCorrupt, name)
			_, err = Salvage(background, dir, filepath.Join(t.TempDir(), "to"), SalvageOptions{})
			require.ErrorIs(t, err, backend.ErrCorrupt, name)
			require.FileExists(t, filepath.Join(dir, indexFile), name)
		}
	}
}

// TestSegmentsAreMissing removes files from the beginning, the middle and the end.
func TestSegmentsAreMissing(t *testing.T) {
	for name, want := range map[string]string{
		"0000000001.seg": "segment 2 begins with commit",
		"0000000002.seg": "the segments before it are missing from 2 on",
	} {
		dir := made(t, Options{SegmentSize: 4 << 10, NoPacking: true}, 80)
		files := namesIn(t, filepath.Join(dir, journalDir))
		require.Greater(t, len(files), 3)
		require.NoError(t, os.Remove(filepath.Join(dir, journalDir, name)))
		_, err := Open(background, dir, Options{})
		require.ErrorIs(t, err, backend.ErrCorrupt)
		require.ErrorContains(t, err, want)
	}
	dir := made(t, Options{SegmentSize: 4 << 10, NoPacking: true}, 80)
	files := namesIn(t, filepath.Join(dir, journalDir))
	require.NoError(t, os.Remove(filepath.Join(dir, journalDir, files[len(files)-1])))
	_, err := Open(background, dir, Options{})
	require.ErrorIs(t, err, backend.ErrCorrupt)
	require.ErrorContains(t, err, "was durable, but the journal ends with commit")
}

// TestCreationWasInterrupted: an empty index is no evidence of loss.
func TestCreationWasInterrupted(t *testing.T) {
	dir := made(t, Options{}, 0)
	require.NoError(t, os.RemoveAll(filepath.Join(dir, journalDir)))
	_, err := Open(background, dir, Options{MustExist: true})
	require.ErrorIs(t, err, backend.ErrNotFound)
	require.NoDirExists(t, filepath.Join(dir, journalDir))
	e := fill(t, dir, Options{}, 3)
	requireMessages(t, e, 3)
	require.NoError(t, e.Close())
}
