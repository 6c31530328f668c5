//go:build unix

package search_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

// TestNothingIsFollowed replaces the files of an index by links, hard links and pipes.
func TestNothingIsFollowed(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), "store"), t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	precious := filepath.Join(outside, "precious")
	require.NoError(t, os.WriteFile(precious, []byte("not an index"), 0o600))
	for _, name := range []string{search.FileName, search.FileName + "-wal", search.FileName + "-shm", search.FileName + "-journal"} {
		path := filepath.Join(dir, name)
		for kind, put := range map[string]func() error{
			"hard link":     func() error { return os.Link(precious, path) },
			"link":          func() error { return os.Symlink(precious, path) },
			"dangling link": func() error { return os.Symlink(filepath.Join(outside, "nothing"), path) },
			"pipe":          func() error { return syscall.Mkfifo(path, 0o600) },
			"directory":     func() error { return os.Mkdir(path, 0o700) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				require.NoError(t, put())
				defer os.Remove(path)
				_, err := search.Open(bg, store, dir, search.Options{})
				require.ErrorIs(t, err, lineage.ErrNotRegular)
				require.ErrorContains(t, err, path)
				entries, err := os.ReadDir(outside)
				require.NoError(t, err)
				require.Len(t, entries, 1)
				b, err := os.ReadFile(precious)
				require.NoError(t, err)
				require.Equal(t, "not an index", string(b))
				_, err = os.Lstat(path)
				require.NoError(t, err)
			})
		}
	}
}
