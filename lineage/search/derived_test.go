package search_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived/derivedtest"
	"github.com/lineage-store/lineage/lineage/search"
)

// indexed is an index in a directory, for the suite of derived data.
type indexed struct{ dir string }

func (i indexed) Open(t require.TestingT, store *lineage.Store, written func()) derivedtest.Handle {
	x, err := search.Open(bg, store, i.dir, search.Options{Progress: func(done, total uint64) { written() }})
	require.NoError(t, err)
	return x
}

// Rows returns what is seen. A collection removes steps that are not, which is no change of their runs.
func (i indexed) Rows(t require.TestingT) []string {
	return slices.DeleteFunc(rowsIn(t, i.dir, "MIN(r.last, r.reached)"), func(row string) bool { return row[:3] == "at " })
}

func (i indexed) Number(t require.TestingT) (n int) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(i.dir, search.FileName))
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, db.QueryRow(`SELECT number FROM meta`).Scan(&n))
	return n
}

func TestDerived(t *testing.T) {
	defer func(was int) { searched.WindowLimit = was }(searched.WindowLimit)
	searched.WindowLimit = 1
	derivedtest.Run(t, derivedtest.Config{New: func(t testing.TB) derivedtest.Data { return indexed{t.TempDir()} }, Rebuilds: true, Checks: 8})
}

func TestMovedDirectory(t *testing.T) {
	derivedtest.Moved(t, func(store *lineage.Store, dir string) (derivedtest.Handle, error) {
		return search.Open(bg, store, dir, search.Options{})
	})
}

// A collection of a store whose directory was moved does not prune the index of the store that took its place.
func TestMovedDirectoryIsNotPruned(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "store")
	openIndexed := func() (*lineage.Store, *search.Index) {
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal, Prune: search.Prune})
		require.NoError(t, err)
		x, err := search.Open(bg, store, dir, search.Options{})
		require.NoError(t, err)
		newMain(t, store, lineage.User("a walrus"))
		require.NoError(t, x.Update(bg))
		return store, x
	}
	store, x := openIndexed()
	require.NoError(t, store.Erase(bg, content.Sum([]byte("a walrus")))) // before the store notices that it was moved
	require.NoError(t, os.Rename(dir, filepath.Join(parent, "moved")))
	other, y := openIndexed()
	require.NoError(t, y.Close())
	require.NoError(t, other.Close())
	before, err := os.ReadFile(filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	_, err = store.Collect(bg, lineage.CollectOptions{})
	require.Error(t, err)
	require.NoError(t, x.Close())
	_ = store.Close() // it says that the directory was moved
	after, err := os.ReadFile(filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// The index of a copy of the store that took its place is not pruned either: the copy may have what the store no longer has.
func TestCopyInPlaceIsNotPruned(t *testing.T) {
	parent := t.TempDir()
	dir, moved := filepath.Join(parent, "store"), filepath.Join(parent, "moved")
	store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	newMain(t, store, lineage.User("a walrus"))
	x, err := search.Open(bg, store, dir, search.Options{})
	require.NoError(t, err)
	require.NoError(t, x.Update(bg))
	require.NoError(t, x.Close())
	require.NoError(t, store.Erase(bg, content.Sum([]byte("a walrus"))))
	require.NoError(t, os.Rename(dir, moved))
	require.NoError(t, os.Mkdir(dir, 0o700))
	before, err := os.ReadFile(filepath.Join(moved, search.FileName))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, search.FileName), before, 0o600))
	require.ErrorIs(t, search.Prune(bg, dir, write.Inner(write.Of(store).Engine())), lineage.ErrDiverged)
	after, err := os.ReadFile(filepath.Join(dir, search.FileName))
	require.NoError(t, err)
	require.Equal(t, before, after)
	_ = store.Close() // it says that the directory was moved
}
