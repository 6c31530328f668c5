//go:build unix

package lock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestNothingIsFollowed replaces the files of a lock by links and pipes.
func TestNothingIsFollowed(t *testing.T) {
	for _, suffix := range []string{".lock", ".lock.guard", ".lock.new"} {
		for kind, put := range map[string]func(path, outside string) error{
			"link":          func(path, outside string) error { return os.Symlink(filepath.Join(outside, "precious"), path) },
			"dangling link": func(path, outside string) error { return os.Symlink(filepath.Join(outside, "nothing"), path) },
			"pipe":          func(path, _ string) error { return unix.Mkfifo(path, 0o600) },
			"directory":     func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "full"), 0o700) },
		} {
			t.Run(suffix+" "+kind, func(t *testing.T) {
				path, outside := target(t), t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(outside, "precious"), []byte("not a lock"), 0o600))
				require.NoError(t, put(path+suffix, outside))
				l := New(path, Options{})
				_, err := l.TryAcquire()
				if suffix != ".lock.new" {
					require.ErrorIs(t, err, ErrNotRegular)
					require.ErrorContains(t, err, path+suffix)
				}
				require.NoError(t, l.Release())
				requireFiles(t, outside, "precious")
				b, err := os.ReadFile(filepath.Join(outside, "precious"))
				require.NoError(t, err)
				require.Equal(t, "not a lock", string(b))
			})
		}
	}
}
