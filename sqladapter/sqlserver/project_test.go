package sqlserver_test

import (
	"context"
	"database/sql"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/projecttest"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
)

func TestProject(t *testing.T) { projects(t, projecttest.RunSequential) }

func TestProjectConcurrent(t *testing.T) { projects(t, projecttest.RunConcurrent) }

func projects(t *testing.T, run func(*testing.T, projecttest.Config)) {
	newDatabase(t) // or skip
	run(t, projecttest.Config{New: newPlace, Checks: 6})
}

func BenchmarkProject(b *testing.B) {
	newDatabase(b) // or skip
	projecttest.Bench(b, projecttest.Config{New: newPlace}, func(n int) string { return "@p" + strconv.Itoa(n) })
}

func newPlace(t testing.TB) projecttest.Database {
	dsn := newDatabase(t)
	raw, err := sql.Open("sqlserver", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	return projecttest.Database{
		Open: func(ctx context.Context, o sqladapter.Options) (*sqladapter.DB, error) {
			return sqlserver.Open(ctx, dsn, o)
		},
		SQL: raw,
	}
}
