package search_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

// The locks of SQLite belong to the process, and closing any file descriptor of its database releases them. Other processes would
// then take the index for one that nobody has open, and remove its log.
func TestSecondHandleLeavesTheLocks(t *testing.T) {
	dir := t.TempDir()
	store, first := open(t, dir)
	t.Cleanup(func() { require.NoError(t, first.Close()); require.NoError(t, store.Close()) })
	newMain(t, store, lineage.User("an ant"))
	require.NotEmpty(t, found(t, first, "ant"))
	second, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	require.NotEmpty(t, found(t, second, "ant"))
	require.NoError(t, second.Close())

	f, err := os.OpenFile(filepath.Join(dir, search.FileName), os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	const firstShared, shared = 0x40000000 + 2, 510
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: firstShared, Len: shared}
	require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock))
	require.Equal(t, int16(unix.F_RDLCK), lock.Type, "the first handle has its shared lock")
}
