package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync/atomic"
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
func TestProject(t *testing.T) { projects(t, projecttest.RunSequential) }

func TestProjectConcurrent(t *testing.T) { projects(t, projecttest.RunConcurrent) }

func projects(t *testing.T, run func(*testing.T, projecttest.Config)) {
	campaign.Long(t)
	run(t, projecttest.Config{New: places(t), Checks: 6, Large: 600}) // more than fits in a transaction
}

// places returns a function that makes places: schemas of one database, as a server takes longer to create databases.
func places(t testing.TB) func(t testing.TB) projecttest.Place {
	all := pgtest.DSN(t)
	pool := func(t testing.TB, dsn string) *sql.DB {
		pool, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, pool.Close()) })
		return pool
	}
	admin := pool(t, all)
	do := func(t testing.TB, statement string) {
		_, err := admin.ExecContext(background, statement)
		require.NoError(t, err)
	}
	var n atomic.Int64
	return func(t testing.TB) projecttest.Place {
		schema := fmt.Sprint("place", n.Add(1))
		do(t, "CREATE SCHEMA "+schema)
		t.Cleanup(func() { do(t, "DROP SCHEMA "+schema+" CASCADE") })
		dsn := withPath(all, schema)
		return projecttest.Place{
			Open: func(ctx context.Context, o sqladapter.Options) (*sqladapter.DB, error) {
				return postgres.Open(ctx, dsn, o)
			},
			SQL: pool(t, dsn),
		}
	}
}

func BenchmarkProject(b *testing.B) {
	projecttest.Bench(b, projecttest.Config{New: places(b)}, func(n int) string { return "$" + strconv.Itoa(n) })
}
