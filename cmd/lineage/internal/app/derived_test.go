package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// Where a directory cannot be written, or has the file of a newer program, what is derived is in one of its own, which is removed.
func TestOpenDerived(t *testing.T) {
	write := func(dir string) (string, error) {
		switch dir {
		case "unwritable":
			return "", fmt.Errorf("open: %w", fs.ErrPermission)
		case "newer":
			return "", fmt.Errorf("open: %w", backend.ErrNewerFormat)
		}
		file := filepath.Join(dir, "derived.db")
		return file, os.WriteFile(file, nil, 0o600)
	}
	dir := t.TempDir()
	file, remove, err := OpenDerived(dir, write)
	require.NoError(t, err)
	require.NoError(t, remove())
	require.Equal(t, filepath.Join(dir, "derived.db"), file)
	require.FileExists(t, file)

	for _, dir := range []string{"unwritable", "newer"} {
		file, remove, err = OpenDerived(dir, write)
		require.NoError(t, err)
		require.FileExists(t, file)
		require.NoError(t, remove())
		require.NoDirExists(t, filepath.Dir(file))
	}

	t.Setenv("TMPDIR", t.TempDir())
	_, _, err = OpenDerived("x", func(dir string) (int, error) {
		if dir == "x" {
			return 0, fs.ErrPermission
		}
		return 0, errors.New("damaged")
	})
	require.ErrorContains(t, err, "damaged")
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	_, _, err = OpenDerived(dir, func(string) (int, error) { return 0, errors.New("damaged") })
	require.ErrorContains(t, err, "damaged")
}
