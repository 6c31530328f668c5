package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// place is a file.
type place string

func (p place) Open(ctx context.Context) (*sqladapter.DB, error) {
	return sqlite.Open(ctx, string(p), sqladapter.Options{})
}

func (p place) Exec(ctx context.Context, script string) error {
	db, err := sql.Open("sqlite", "file:"+string(p)+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, script)
	return err
}

func config(t testing.TB) sqltest.Config {
	documented, err := os.ReadFile("schema_documented.sql")
	require.NoError(t, err)
	return sqltest.Config{
		New:    func(t testing.TB) sqltest.Database { return place(filepath.Join(t.TempDir(), "chats.db")) },
		NameOf: func(p sqltest.Database) string { return string(p.(place)) },
		Named:  func(name string) sqltest.Database { return place(name) },
		OpenWith: func(ctx context.Context, p sqltest.Database, o sqladapter.Options) (*sqladapter.DB, error) {
			return sqlite.Open(ctx, string(p.(place)), o)
		},
		Pool: func(t testing.TB, p sqltest.Database) *sql.DB {
			pool, err := sql.Open("sqlite", "file:"+string(p.(place)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, pool.Close()) })
			return pool
		},
		WithPool:   sqlite.New,
		Documented: string(documented),
		Dialect:    sqlite.Dialect{},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	sqltest.RunSequential(t, config(t))
}

func TestSuiteConcurrent(t *testing.T) {
	campaign.Long(t)
	t.Parallel()
	sqltest.RunConcurrent(t, config(t))
}

func Benchmark(b *testing.B) { sqltest.Bench(b, config(b)) }

func BenchmarkSearch(b *testing.B) { sqltest.BenchSearch(b, config(b)) }

var goldenSearches = filepath.Join("..", "sqltest", "testdata", "search.golden")

// TestSearchGolden rewrites the golden file of search results, which TestSuite compares with all
// databases.
func TestSearchGolden(t *testing.T) {
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "" {
		t.Skip("nothing to rewrite: TestSuite compares")
	}
	db, err := sqlite.Open(context.Background(), sqlite.Memory, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	sqltest.Fill(t, sqlchat.On(db), "c")
	require.NoError(t, os.WriteFile(goldenSearches, []byte(sqltest.SearchAll(t, sqlchat.On(db), "c")), 0o666))
}

// TestSearchAsFTS5 compares the golden search results with those of SQLite's own index.
//
// feature: storage/search-syntax
func TestSearchAsFTS5(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chats.db")
	db, err := sqlite.Open(context.Background(), path, sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	sqltest.Fill(t, sqlchat.On(db), "c")
	golden, err := os.ReadFile(goldenSearches)
	require.NoError(t, err)
	raw, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer raw.Close()
	compared := 0
	for line := range strings.Lines(string(golden)) {
		query, found, ok := cutQuoted(line)
		require.True(t, ok)
		if strings.ContainsAny(query, "日テ") || strings.HasPrefix(query, "name:") {
			continue // FTS5 does not split scripts without spaces, and searches another column
		}
		rows, err := raw.Query(`SELECT messageId FROM messages_fts WHERE messages_fts MATCH ? ORDER BY messageId`, query)
		if err != nil {
			continue // invalid in FTS5; here its words are searched
		}
		var ids []string
		for rows.Next() {
			var id string
			require.NoError(t, rows.Scan(&id))
			ids = append(ids, id)
		}
		if rows.Err() != nil {
			continue
		}
		slices.Sort(ids)
		require.Equal(t, strings.Join(ids, " "), found, "%q", query)
		compared++
	}
	require.Greater(t, compared, 800)
}

// cutQuoted splits a line into the quoted query at its beginning and the rest.
func cutQuoted(line string) (query, rest string, ok bool) {
	quoted, err := strconv.QuotedPrefix(line)
	if err != nil {
		return "", "", false
	}
	query, err = strconv.Unquote(quoted)
	return query, strings.TrimSpace(line[len(quoted):]), err == nil
}
