package lineage_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A store that was opened by a relative path stays where it is when the program changes its working directory.
func TestChangedWorkingDirectory(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	t.Chdir(before)
	s, err := lineage.Open(bg, "store", lineage.Options{SegmentSize: 1, NoPacking: true})
	require.NoError(t, err)
	t.Chdir(after)
	const messages = 10
	for range messages {
		newContext(t, s, "said")
	}
	require.NoError(t, s.Close())
	left, err := os.ReadDir(after)
	require.NoError(t, err)
	require.Empty(t, left)
	t.Chdir(before)
	s, err = lineage.Open(bg, "store", lineage.Options{MustExist: true})
	require.NoError(t, err)
	stats, err := s.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, uint64(messages), stats.Contexts)
	require.NoError(t, s.Close())
}
