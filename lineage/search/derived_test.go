package search_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/searched"
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
