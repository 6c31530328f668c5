package postgres_test

import (
	"context"
	"database/sql"
	"strconv"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/projecttest"
)

// feature: lineage/tables
//
//test:norace
func TestProject(t *testing.T) { projects(t, projecttest.RunSequential) }

func TestProjectConcurrent(t *testing.T) { projects(t, projecttest.RunConcurrent) }

func projects(t *testing.T, run func(*testing.T, projecttest.Config)) {
	campaign.Long(t)
	run(t, projecttest.Config{New: newPlace, Checks: 6, Large: 600}) // more than fits in a transaction
}

func newPlace(t testing.TB) projecttest.Place {
	dsn := pgtest.DSN(t)
	raw, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, raw.Close()) })
	return projecttest.Place{
		Open: func(ctx context.Context, o sqladapter.Options) (*sqladapter.DB, error) {
			return postgres.Open(ctx, dsn, o)
		},
		SQL: raw,
	}
}

func BenchmarkProject(b *testing.B) {
	projecttest.Bench(b, projecttest.Config{New: newPlace}, func(n int) string { return "$" + strconv.Itoa(n) })
}
