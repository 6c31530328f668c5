package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/titles"
)

// TestManyTitlesAreKept lists more threads than those whose messages are read each time.
func TestManyTitlesAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store, err := lineage.Open(t.Context(), dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	add := func(n int) {
		for i := range n {
			thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
			require.NoError(t, err)
			c, err := thread.Active(t.Context())
			require.NoError(t, err)
			_, err = c.Extend(t.Context(), lineage.User(fmt.Sprintf("prompt %d", i)))
			require.NoError(t, err)
		}
	}
	add(100)
	list := func() string {
		got := runLine(t.Context(), "thread", "list", "--store", dir)
		require.Equal(t, 0, got.code, got.err)
		return got.out
	}
	list()
	require.NoFileExists(t, filepath.Join(dir, titles.FileName))
	add(1)
	require.NoError(t, store.Close())
	first := list()
	require.FileExists(t, filepath.Join(dir, titles.FileName))
	require.Contains(t, first, "prompt 99")
	require.Equal(t, first, list())
}
