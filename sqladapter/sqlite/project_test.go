package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend/backendtest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/project"
	"github.com/lineage-store/lineage/sqladapter/projecttest"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// feature: lineage/tables
func TestProject(t *testing.T) { projects(t, projecttest.RunSequential) }

func TestProjectConcurrent(t *testing.T) {
	campaign.Long(t)
	projects(t, projecttest.RunConcurrent)
}

func projects(t *testing.T, run func(*testing.T, projecttest.Config)) {
	run(t, projecttest.Config{New: newPlace, Checks: 8, Large: 600}) // more than fits in a transaction
}

func newPlace(t testing.TB) projecttest.Database {
	path := filepath.Join(t.TempDir(), "chats.db")
	raw, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(600000)") // other processes may write
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	return projecttest.Database{
		Open: func(ctx context.Context, o sqladapter.Options) (*sqladapter.DB, error) {
			return sqlite.Open(ctx, path, o)
		},
		SQL: raw,
	}
}

// Content that a store has lost permanently is in no row and no search index.
func TestProjectLeavesNoBytesOfRows(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	path := filepath.Join(dir, "chats.db")
	store, err := lineage.Open(ctx, filepath.Join(dir, "store"), lineage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	project := func() string {
		db, err := sqlite.Open(ctx, path, sqladapter.Options{})
		require.NoError(t, err)
		_, err = (&project.Projector{Store: store, DB: db}).Run(ctx)
		require.NoError(t, errors.Join(err, db.Close()))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(b)
	}
	var threads []*lineage.Thread
	for _, title := range []string{"KEPT", "ZEBRA"} {
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{Title: title + " title", Metadata: []byte(`{"about":"` + title + `"}`)})
		require.NoError(t, err)
		threads = append(threads, thread)
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		for i := range 20 {
			_, err = main.Extend(ctx, lineage.User(fmt.Sprintf("%s message %d", title, i)))
			require.NoError(t, err)
		}
		_, err = main.Extend(ctx, lineage.User("QUAGGA "+title))
		require.NoError(t, err)
	}
	first := project()
	require.Contains(t, first, "ZEBRA message 7")
	require.Contains(t, first, "zebra", "the index has words in lower case")

	kept, err := threads[0].Active(ctx)
	require.NoError(t, err)
	last, err := kept.Last(ctx, 1)
	require.NoError(t, err)
	require.NoError(t, store.Erase(ctx, last[0].Content))
	require.NoError(t, threads[1].Delete(ctx))
	b := project()
	require.Contains(t, b, "KEPT message 7")
	b = strings.ToLower(b)
	require.NotContains(t, b, "zebra")
	require.NotContains(t, b, "quagga")
}

func BenchmarkProject(b *testing.B) {
	projecttest.Bench(b, projecttest.Config{New: newPlace}, func(int) string { return "?" })
}

// A projection continues with the next state when one expires. A comparison says that it has to be repeated.
func TestProjectExpired(t *testing.T) {
	ctx := t.Context()
	store, err := lineage.OpenMemory(ctx, lineage.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("one"), lineage.User("two"))
	require.NoError(t, err)
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })

	engine := &backendtest.Expiring{Engine: write.Of(store).Engine()}
	expiring := lineage.New(engine)
	engine.Left.Store(2)
	report, err := (&project.Projector{Store: expiring, DB: db}).Run(ctx)
	require.NoError(t, err)
	require.Equal(t, 2, report.Added)
	require.EqualValues(t, -1, engine.Left.Load())
	for d, err := range project.Compare(ctx, db, expiring, project.CompareOptions{}) {
		require.NoError(t, err)
		require.Fail(t, d.String())
	}
	engine.Left.Store(1)
	for _, err := range project.Compare(ctx, db, expiring, project.CompareOptions{}) {
		require.ErrorIs(t, err, lineage.ErrExpired)
		require.ErrorContains(t, err, "repeat it")
	}
}
