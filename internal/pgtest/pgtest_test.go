package pgtest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
)

func TestEachTestHasItsDatabase(t *testing.T) {
	campaign.Long(t)
	ctx := context.Background()
	for _, dsn := range []string{DSN(t), DSN(t)} {
		conn, err := pgx.Connect(ctx, dsn)
		require.NoError(t, err)
		_, err = conn.Exec(ctx, `CREATE TABLE mine (a TEXT)`)
		require.NoError(t, err)
		require.NoError(t, conn.Close(ctx))
	}
}

func TestDatabasesAreDropped(t *testing.T) {
	campaign.Long(t)
	ctx := context.Background()
	var dsn string
	var left *pgx.Conn
	t.Run("a test", func(t *testing.T) {
		dsn = DSN(t)
		var err error
		left, err = pgx.Connect(ctx, dsn) // and forgotten
		require.NoError(t, err)
	})
	_, err := pgx.Connect(ctx, dsn)
	require.ErrorContains(t, err, "does not exist")
	_ = left.Close(ctx)
}

func TestWithDatabase(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:p@h:1/old?sslmode=disable":    "postgres://u:p@h:1/new?sslmode=disable",
		"postgresql://h/?dbname=old&host=%2Fsocket": "postgresql://h/new?host=%2Fsocket",
		"host=h dbname=old":                         "host=h dbname=old dbname=new",
	} {
		got, err := withDatabase(dsn, "new")
		require.NoError(t, err)
		require.Equal(t, want, got)
		config, err := pgx.ParseConfig(got)
		require.NoError(t, err)
		require.Equal(t, "new", config.Database)
	}
	_, err := withDatabase("postgres://%zz", "new")
	require.Error(t, err)
}

func TestUnavailableIsLoud(t *testing.T) {
	for _, ci := range []string{"true", ""} {
		t.Setenv("CI", ci)
		r := &recorder{TB: t}
		require.PanicsWithValue(t, r, func() { unavailable(r, os.ErrNotExist) })
		require.Equal(t, ci == "true", r.failed)
		require.Equal(t, ci != "true", r.skipped)
		require.Contains(t, r.said, Variable)
	}
}

// recorder notes how a test ended, and ends it by a panic.
type recorder struct {
	testing.TB
	failed, skipped bool
	said            string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed, r.said = true, fmt.Sprintf(format, args...)
	panic(r)
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped, r.said = true, fmt.Sprintf(format, args...)
	panic(r)
}
