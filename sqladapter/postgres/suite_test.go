package postgres_test

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// place is a database.
type place struct {
	dsn string
	// quoted keeps the quotes around names in scripts.
	quoted bool
}

func (p place) Open(ctx context.Context) (*sqladapter.DB, error) {
	return postgres.Open(ctx, p.dsn, sqladapter.Options{})
}

var quotedName = regexp.MustCompile(`"(idx_\w+|messages_fts\w*|[a-z]+[A-Z]\w*)"`)

func (p place) Exec(ctx context.Context, script string) error {
	if !p.quoted {
		script = quotedName.ReplaceAllString(script, "$1")
	}
	db, err := sql.Open("pgx", p.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, script)
	return err
}

func config(t testing.TB, quoted bool) sqltest.Config {
	documented, err := os.ReadFile("schema_documented.sql")
	require.NoError(t, err)
	return sqltest.Config{
		New:    func(t testing.TB) sqltest.Database { return place{pgtest.DSN(t), quoted} },
		NameOf: func(p sqltest.Database) string { return p.(place).dsn },
		Named:  func(name string) sqltest.Database { return place{name, quoted} },
		OpenWith: func(ctx context.Context, p sqltest.Database, o sqladapter.Options) (*sqladapter.DB, error) {
			return postgres.Open(ctx, p.(place).dsn, o)
		},
		Pool: func(t testing.TB, p sqltest.Database) *sql.DB {
			pool, err := sql.Open("pgx", p.(place).dsn)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, pool.Close()) })
			return pool
		},
		WithPool:   postgres.New,
		Documented: string(documented),
		Dialect:    postgres.Dialect{},
	}
}

func TestSuite(t *testing.T) {
	campaign.Long(t)
	sqltest.RunSequential(t, config(t, false))
}

func TestSuiteConcurrent(t *testing.T) {
	campaign.Long(t)
	sqltest.RunConcurrent(t, config(t, false))
}

// TestQuoted adopts a database with quoted names, spelled as in the documented script.
func TestQuoted(t *testing.T) {
	campaign.Long(t)
	c := config(t, true)
	require.Contains(t, c.Documented, `"chatId"`)
	sqltest.RunAdopted(t, c)
	chattest.Run(t, chattest.Config{Search: true, Reformats: true, MaxID: 1300, LongChain: 2000, New: func(t testing.TB) chattest.OpenFunc {
		p := c.New(t)
		require.NoError(t, p.Exec(background, c.Documented))
		return func(ctx context.Context) (chat.Store, func() error, error) {
			db, err := p.Open(ctx)
			if err != nil {
				return nil, nil, err
			}
			return sqlchat.On(db), db.Close, nil
		}
	}})
}

func Benchmark(b *testing.B) { sqltest.Bench(b, config(b, false)) }

func BenchmarkSearch(b *testing.B) { sqltest.BenchSearch(b, config(b, false)) }
