package postgres

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallDisk mounts a file system of a few megabytes in a directory of a cluster.
func smallDisk(t *testing.T, cluster string) string {
	t.Helper()
	var is syscall.Stat_t
	require.NoError(t, syscall.Stat(cluster, &is))
	place := filepath.Join(cluster, "small")
	require.NoError(t, os.Mkdir(place, 0o755))
	if err := syscall.Mount("tmpfs", place, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("NOT TESTED: no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(place, syscall.MNT_DETACH)) })
	data := filepath.Join(place, "data")
	require.NoError(t, os.Mkdir(data, 0o700))
	require.NoError(t, os.Chown(data, int(is.Uid), int(is.Gid)))
	return place
}
