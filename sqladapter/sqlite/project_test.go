package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/projecttest"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

func TestProject(t *testing.T) { projecttest.Run(t, projecttest.Config{New: newPlace}) }

func newPlace(t testing.TB) projecttest.Place {
	path := filepath.Join(t.TempDir(), "chats.db")
	raw, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	return projecttest.Place{
		Open: func(ctx context.Context, o *sqladapter.Options) (*sqladapter.DB, error) {
			return sqlite.Open(ctx, path, o)
		},
		SQL: raw,
	}
}

func BenchmarkProject(b *testing.B) {
	projecttest.Bench(b, projecttest.Config{New: newPlace}, func(int) string { return "?" })
}
