//go:build unix

package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// useFiles does what creates, renames and removes files. It ignores errors.
func useFiles(e *Engine, from, to uint64) {
	for n := from; n <= to; n++ {
		_, _ = e.Apply(background, message(n), backend.Options{Durability: backend.Normal})
	}
	_, _ = e.Pack(background, backend.PackOptions{})
	_, _ = e.Collect(background, backend.CollectOptions{})
}

// A store whose directory is moved while it is open writes nothing to the store that takes its place.
func TestMovedDirectory(t *testing.T) {
	parent := t.TempDir()
	dir, moved := filepath.Join(parent, "store"), filepath.Join(parent, "moved")
	small := Options{SegmentSize: 1 << 10, OverlayBytes: 1 << 10}
	first := fill(t, dir, small, 20)
	require.NoError(t, os.Rename(dir, moved))
	second := fill(t, dir, small, 30)
	require.NoError(t, second.Close())
	before := treeOf(t, dir)
	useFiles(first, 21, 60)
	head, err := first.Head(background)
	require.NoError(t, err)
	require.ErrorContains(t, first.Close(), "was moved, removed or replaced")
	require.Equal(t, before, treeOf(t, dir))
	second = reopen(t, dir, Options{})
	requireMessages(t, second, 30)
	require.Empty(t, findings(t, second, true))
	again := reopen(t, moved, Options{})
	requireMessages(t, again, head.Number)
}

// A store whose lock file was removed while it is open is not opened a second time: its index is locked, too.
func TestRemovedLockFile(t *testing.T) {
	dir := t.TempDir()
	owner := fill(t, dir, Options{}, 5)
	require.NoError(t, os.Remove(filepath.Join(dir, LockFile)))
	_, err := Open(background, dir, Options{})
	require.ErrorIs(t, err, backend.ErrLocked)
	_ = owner.Close() // it says that the lock file was removed
	requireMessages(t, reopen(t, dir, Options{}), 5)
}

// Some file systems number open files anew: what the lock has written to the file shows that it is the same one.
func TestRenumberedLock(t *testing.T) {
	dir := t.TempDir()
	e := fill(t, dir, Options{}, 1)
	lock := filepath.Join(dir, LockFile)
	b, err := os.ReadFile(lock)
	require.NoError(t, err)
	require.NoError(t, os.Rename(lock, lock+".old"))
	require.NoError(t, os.WriteFile(lock, b, 0o600))
	require.NoError(t, e.lock.current())
	require.NoError(t, os.WriteFile(lock, append(b, ' '), 0o600))
	require.Error(t, e.lock.current())
	require.NoError(t, os.Rename(lock+".old", lock))
	require.NoError(t, e.Close())
}
