//go:build unix

package embedded

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lineage-store/lineage/lineage/backend"
)

// A store that is closed can be opened at once, although a child process that is being started still
// has the lock file open.
func TestLockIsReleasedFromChildren(t *testing.T) {
	dir := t.TempDir()
	for _, readOnly := range []bool{false, true} {
		e, err := Open(background, dir, Options{ReadOnly: readOnly})
		require.NoError(t, err)
		child, err := unix.Dup(int(e.lock.file.Fd()))
		require.NoError(t, err)
		_, err = Open(background, dir, Options{})
		require.ErrorIs(t, err, backend.ErrLocked)
		require.NoError(t, e.Close())
		again, err := Open(background, dir, Options{})
		require.NoError(t, err)
		require.NoError(t, again.Close())
		require.NoError(t, unix.Close(child))
	}
}
