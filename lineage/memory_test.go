package lineage_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A store in memory creates no file, is lost when it is closed, and can be backed up to a
// directory.
//
// feature: storage/memory
func TestOpenMemory(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	s, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	thread, main := newThread(t, s)
	tip := say(t, main, "a", largeText, "b")
	require.NoError(t, s.Sync(bg))
	_, err = s.Pack(bg, lineage.PackOptions{All: true})
	require.NoError(t, err)
	left, err := os.ReadDir(here)
	require.NoError(t, err)
	require.Empty(t, left)

	backup := filepath.Join(t.TempDir(), "backup")
	_, err = s.Backup(bg, backup, lineage.BackupOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = s.Thread(bg, thread.ID())
	require.ErrorIs(t, err, lineage.ErrClosed)

	again, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	_, err = again.Thread(bg, thread.ID())
	require.ErrorIs(t, err, lineage.ErrNotFound)
	require.NoError(t, again.Close())
	position, err := open(t, backup).Position(bg, tip)
	require.NoError(t, err)
	require.EqualValues(t, 3, position)

	for _, o := range []lineage.Options{{ReadOnly: true}, {MustExist: true}} {
		_, err := lineage.OpenMemory(bg, o)
		require.ErrorIs(t, err, lineage.ErrNotFound)
	}
}
