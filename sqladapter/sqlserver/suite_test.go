package sqlserver_test

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// place is a database.
type place string

func (p place) Open(ctx context.Context) (*sqladapter.DB, error) {
	return sqlserver.Open(ctx, string(p), sqladapter.Options{})
}

func (p place) Exec(ctx context.Context, script string) error {
	db, err := sql.Open("sqlserver", string(p))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, script)
	return err
}

func config(t testing.TB) sqltest.Config {
	if os.Getenv(server) == "" {
		t.Skipf("NOT TESTED against a real SQL Server: %s names none", server)
	}
	documented, err := os.ReadFile("schema_documented.sql")
	require.NoError(t, err)
	return sqltest.Config{
		New:    func(t testing.TB) sqltest.Database { return place(newDatabase(t)) },
		NameOf: func(p sqltest.Database) string { return string(p.(place)) },
		Named:  func(name string) sqltest.Database { return place(name) },
		OpenWith: func(ctx context.Context, p sqltest.Database, o sqladapter.Options) (*sqladapter.DB, error) {
			return sqlserver.Open(ctx, string(p.(place)), o)
		},
		Pool: func(t testing.TB, p sqltest.Database) *sql.DB {
			pool, err := sql.Open("sqlserver", string(p.(place)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, pool.Close()) })
			return pool
		},
		WithPool: sqlserver.New,
		// Other programs create them with the default collation of the database.
		Documented: strings.ReplaceAll(string(documented), " COLLATE Latin1_General_BIN2", ""),
		Dialect:    sqlserver.Dialect{},
	}
}

func TestSuite(t *testing.T) { sqltest.RunSequential(t, config(t)) }

func TestSuiteConcurrent(t *testing.T) { sqltest.RunConcurrent(t, config(t)) }

func Benchmark(b *testing.B) { sqltest.Bench(b, config(b)) }
