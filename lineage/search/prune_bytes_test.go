package search_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

// Collected words that were between others on the pages of a file, which SQLite divided and filled up again, are on none of them.
func TestPagesHaveNoCollectedWords(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 100
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: search.Prune})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	var gone []*lineage.Thread
	for i := range 400 {
		text := secret(i)
		if i%2 == 0 {
			text = strings.ReplaceAll(text, "voynich", "staying")
		}
		thread, _ := newMain(t, store, lineage.User(text))
		if i%2 == 1 {
			gone = append(gone, thread)
		}
	}
	require.NoError(t, x.Update(bg))
	requireSecret(t, dir)
	for _, thread := range gone {
		require.NoError(t, thread.Delete(bg))
	}
	require.NotContains(t, collect(t, store).Removed, search.FileName)
	requireNoSecret(t, dir)
	b, err := os.ReadFile(filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(b), "staying"), 200)
}
