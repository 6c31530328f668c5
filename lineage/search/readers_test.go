package search_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

// Opening an index that is up to date, and searching it, writes nothing, so it does not wait for another process that writes.
func TestSearchWhileTheIndexIsWritten(t *testing.T) {
	dir := t.TempDir()
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	newMain(t, store, lineage.User("a walrus"))
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	require.NoError(t, x.Update(bg))

	path := filepath.Join(dir, search.FileName)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(`UPDATE meta SET texts = texts`)
	require.NoError(t, err)
	before, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	for range 2 {
		y, err := search.Open(bg, store, dir, search.Options{})
		require.NoError(t, err)
		hits, err := y.Search(bg, search.Query{Text: "walrus"})
		require.NoError(t, err)
		require.Len(t, hits, 1)
		require.NoError(t, y.Close())
	}
	require.NoError(t, tx.Rollback())
	after, err := os.ReadFile(path + "-wal")
	require.NoError(t, err)
	require.Equal(t, before, after)
}
