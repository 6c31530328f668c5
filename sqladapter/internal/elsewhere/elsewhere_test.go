package elsewhere_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/projecttest"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
	"github.com/lineage-store/lineage/sqladapter/sqlserver"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// elsewhere is the SQL Server dialect with the syntax of SQLite. It replaces a server, except for
// the T-SQL.
type elsewhere struct{ sqlserver.Dialect }

func (elsewhere) Syntax() sqladapter.Syntax {
	x := sqlite.Dialect{}.Syntax()
	x.Version = `m."createdAt" || '|' || length(m."chatId") || '|' || m."chatId" || length(m."name") || '|' || m."name" || m."data"`
	return x
}

func (elsewhere) Migrations() []sqladapter.Migration {
	migrations := sqlserver.Dialect{}.Migrations()
	for i := range migrations {
		m := &migrations[i]
		m.Documented, m.SQL, m.Outside = translated(m.Documented), translated(m.SQL), ""
	}
	return migrations
}

func (elsewhere) ProjectionSchema() string { return translated(sqlserver.Dialect{}.ProjectionSchema()) }

func (elsewhere) LineageSchema() string { return translated(sqlserver.Dialect{}.LineageSchema()) }

func (elsewhere) LockSchema(context.Context, sqladapter.Querier) error { return nil }

func (elsewhere) Kind(ctx context.Context, q sqladapter.Querier, name string) (string, error) {
	return sqlite.Dialect{}.Kind(ctx, q, name)
}

func (elsewhere) Columns(ctx context.Context, q sqladapter.Querier, table string) ([]string, error) {
	return sqlite.Dialect{}.Columns(ctx, q, table)
}

func (elsewhere) Classify(err error) sqladapter.Failure { return sqlite.Dialect{}.Classify(err) }

var translations = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`IF OBJECT_ID\([^)]*\) IS NULL\s+BEGIN|END;`), ""},
	{regexp.MustCompile(`IF NOT EXISTS \(SELECT \* FROM sys\.indexes[^\n]*\n`), ""},
	{regexp.MustCompile(` COLLATE Latin1_General_BIN2`), ""},
	{regexp.MustCompile(`ALTER TABLE [^\n]*\n`), ""},
	{regexp.MustCompile(`NVARCHAR\(MAX\)`), "TEXT"},
	{regexp.MustCompile(`VARBINARY\(MAX\)`), "BLOB"},
	{regexp.MustCompile(`DEFAULT DATEDIFF_BIG\([^)]*\(\)\)`), "DEFAULT 0"},
}

func translated(script string) string {
	for _, t := range translations {
		script = t.pattern.ReplaceAllString(script, t.with)
	}
	return script
}

// file is a SQLite database.
type file string

func (f file) Open(ctx context.Context) (*sqladapter.DB, error) {
	return f.open(ctx, sqladapter.Options{})
}

func (f file) open(ctx context.Context, o sqladapter.Options) (*sqladapter.DB, error) {
	pool, err := sql.Open("sqlite", f.dsn())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(1)
	return sqlchat.Open(ctx, sqladapter.Pools{Write: pool}, elsewhere{}, o)
}

func (f file) Exec(ctx context.Context, script string) error {
	pool, err := sql.Open("sqlite", f.dsn())
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.ExecContext(ctx, script)
	return err
}

func (f file) dsn() string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(string(f))}).EscapedPath() + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=foreign_keys(1)"
}

func place(t testing.TB) sqltest.Database { return file(filepath.Join(t.TempDir(), "chats.db")) }

// In short runs TestChats alone tests this dialect.
func TestSuite(t *testing.T) { suite(t, sqltest.RunSequential) }

func TestSuiteConcurrent(t *testing.T) { suite(t, sqltest.RunConcurrent) }

func suite(t *testing.T, run func(*testing.T, sqltest.Config)) {
	campaign.Long(t)
	documented, err := os.ReadFile(filepath.Join("..", "..", "sqlserver", "schema_documented.sql"))
	require.NoError(t, err)
	require.NotContains(t, translated(string(documented)), "IF ")
	run(t, sqltest.Config{
		New:    place,
		NameOf: func(p sqltest.Database) string { return string(p.(file)) },
		Named:  func(name string) sqltest.Database { return file(name) },
		OpenWith: func(ctx context.Context, p sqltest.Database, o sqladapter.Options) (*sqladapter.DB, error) {
			return p.(file).open(ctx, o)
		},
		Pool: func(t testing.TB, p sqltest.Database) *sql.DB {
			pool, err := sql.Open("sqlite", p.(file).dsn())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, pool.Close()) })
			return pool
		},
		WithPool: func(ctx context.Context, pool *sql.DB, o sqladapter.Options) (*sqladapter.DB, error) {
			return sqlchat.Open(ctx, sqladapter.Pools{Write: pool, Shared: true}, elsewhere{}, o)
		},
		Documented: translated(string(documented)), Dialect: elsewhere{},
	})
}

// TestChats runs the suite for chat stores.
func TestChats(t *testing.T) { chats(t, chattest.RunSequential) }

// TestConformance runs what the suite does from many goroutines, and random calls, under the race detector.
func TestConformance(t *testing.T) {
	campaign.Long(t)
	chats(t, chattest.RunConcurrent)
}

func chats(t *testing.T, run func(*testing.T, chattest.Config)) {
	run(t, chattest.Config{Search: true, MaxID: 255, New: func(t testing.TB) chattest.OpenFunc {
		p := place(t)
		return func(ctx context.Context) (chat.Store, func() error, error) {
			db, err := p.Open(ctx)
			if err != nil {
				return nil, nil, err
			}
			return sqlchat.On(db), db.Close, nil
		}
	}})
}

// TestProject runs the suite of projections.
func TestProject(t *testing.T) {
	campaign.Long(t)
	projecttest.RunSequential(t, projecttest.Config{Checks: 4, Large: 600, New: func(t testing.TB) projecttest.Database {
		f := place(t).(file)
		raw, err := sql.Open("sqlite", f.dsn())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, raw.Close()) })
		return projecttest.Database{Open: f.open, SQL: raw}
	}})
}

// TestDeletedByOthers reuses an id of a message that another program has deleted: index rows of the
// old one do not apply.
func TestDeletedByOthers(t *testing.T) {
	ctx := context.Background()
	f := file(filepath.Join(t.TempDir(), "chats.db"))
	db, err := f.Open(ctx)
	require.NoError(t, err)
	defer db.Close()
	s := sqlchat.On(db)
	say := func(chatID, words string) {
		_, err := s.CreateChat(ctx, chat.Chat{ID: chatID, UserID: "ada"})
		require.NoError(t, err)
		b, err := s.ActiveBranch(ctx, chatID)
		require.NoError(t, err)
		_, err = s.Append(ctx, chat.AppendRequest{ChatID: chatID, BranchID: b.ID, Messages: []chat.Message{{ID: "m", Name: "user", Data: []byte(`"` + words + `"`)}}})
		require.NoError(t, err)
	}
	say("c", "a zebra")
	require.NoError(t, f.Exec(ctx, strings.Join([]string{
		`DELETE FROM branches`, `DELETE FROM messages_fts`, `DELETE FROM messages`, `DELETE FROM chats`,
	}, ";")))
	say("d", "an okapi")
	for query, want := range map[string]int{"zebra": 0, "okapi": 1} {
		found, err := s.SearchMessages(ctx, "d", query, chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, found, want, query)
	}
}
