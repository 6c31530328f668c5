package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/sqladapter"
)

// manual returns the SQL of a section of docs/postgres.md.
func manual(t *testing.T, section string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/postgres.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "\n## "+section+"\n")
	require.True(t, found, section)
	after, _, _ = strings.Cut(after, "\n## ")
	var all []string
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(after, -1) {
		all = append(all, block[1])
	}
	require.NotEmpty(t, all)
	return strings.Join(all, "\n")
}

// roles makes roles for a test, and returns what replaces the names in the manual.
func roles(t *testing.T, admin *pgxpool.Pool, names ...string) *strings.Replacer {
	t.Helper()
	var pairs []string
	for _, name := range names {
		role := pgx.Identifier{"lineage_test_" + strings.ToLower(rand.Text())}.Sanitize()
		_, err := admin.Exec(background, `CREATE ROLE `+role, exec)
		require.NoError(t, err)
		t.Cleanup(func() {
			_, err := admin.Exec(background, `DROP OWNED BY `+role+`; DROP ROLE `+role, pgx.QueryExecModeSimpleProtocol)
			require.NoError(t, err)
		})
		pairs = append(pairs, name, role)
	}
	return strings.NewReplacer(pairs...)
}

// as returns connections of a role.
func as(t *testing.T, dsn, role string) *pgxpool.Pool {
	return newPool(t, dsn, func(c *pgxpool.Config) {
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `SET ROLE `+role, exec)
			return err
		}
	})
}

// TestLeastRights does with the rights of the manual everything that a program does, and nothing
// with fewer.
func TestLeastRights(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := newPool(t, dsn, nil)
	role := roles(t, admin, "lineage_app")
	app := as(t, dsn, role.Replace("lineage_app"))
	_, err := admin.Exec(background, `REVOKE CREATE ON SCHEMA public FROM PUBLIC`, exec)
	require.NoError(t, err)
	_, err = New(background, app, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, sqladapter.ErrDenied, "no rights to make tables")
	createThread(t, handle(t, admin, "s"), backend.Full)
	_, err = New(background, app, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, sqladapter.ErrDenied, "no rights on the tables")

	_, err = admin.Exec(background, role.Replace(manual(t, "Rights")), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	e := handle(t, app, "s")
	createThread(t, e, backend.Full)
	createThread(t, e, backend.Normal)
	e.writing.Lock()
	e.contended = 1
	e.writing.Unlock()
	createThread(t, e, backend.Full)
	require.NoError(t, e.Sync(background))
	require.Len(t, history(t, e), 4)
	createThread(t, handle(t, app, "another"), backend.Full)
	tell(t, e, "a word")
	require.Len(t, snippets(t, searching(t, lineage.New(e), search.Options{}), "word"), 1)
	for _, statement := range []string{`DELETE FROM lineage_log`, `UPDATE lineage_log SET id = 1`, `DROP TABLE lineage_log`, `DELETE FROM lineage_store`, `UPDATE lineage_schema SET version = 9`} {
		_, err := app.Exec(background, statement, exec)
		require.Equal(t, insufficient, sqlState(err), statement)
	}
}

// TestTenants gives each role a store, as the manual says: none sees, or writes to, another's.
func TestTenants(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin := newPool(t, dsn, nil)
	for _, store := range []string{"ada", "bob"} {
		createThread(t, handle(t, admin, store), backend.Full)
	}
	role := roles(t, admin, "tenant_ada", "tenant_bob")
	_, err := admin.Exec(background, role.Replace(manual(t, "Tenants")), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	for mine, others := range map[string]string{"ada": "bob", "bob": "ada"} {
		pool := as(t, dsn, role.Replace("tenant_"+mine))
		e := handle(t, pool, mine)
		createThread(t, e, backend.Full)
		createThread(t, e, backend.Normal)
		require.NoError(t, e.Sync(background))
		require.Len(t, history(t, e), 3)
		tell(t, e, "a word of "+mine)
		require.Equal(t, []string{"a <mark>word</mark> of " + mine}, snippets(t, searching(t, lineage.New(e), search.Options{}), "word"))
		_, err := New(background, pool, Options{Store: others, Unsafe: true, MustExist: true})
		require.ErrorIs(t, err, backend.ErrNotFound)
		_, err = New(background, pool, Options{Store: others, Unsafe: true})
		require.Equal(t, insufficient, sqlState(err), "%v", err)
		for _, table := range []string{"lineage_log", "lineage_store", "lineage_durable", "lineage_collection", "lineage_entry", "lineage_head", "lineage_former", "lineage_search", "lineage_search_text", "lineage_search_usage"} {
			var n int
			require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM `+table+` WHERE store <> $1`, exec, keyOf(mine)).Scan(&n))
			require.Zero(t, n, table)
		}
		_, err = pool.Exec(background, `INSERT INTO lineage_log (store, n, count, id, data, entries) VALUES ($1, 99, 1, 1, '', 0)`, exec, keyOf(others))
		require.Equal(t, insufficient, sqlState(err), "%v", err)
	}
	var key []byte
	require.NoError(t, admin.QueryRow(background, fmt.Sprintf(`SELECT substring(sha256(convert_to('%s', 'UTF8')) FOR 16)`, "ada"), exec).Scan(&key))
	require.Equal(t, keyOf("ada"), key)
}

// TestManyOpenAtOnce has many make the tables and the store at once.
func TestManyOpenAtOnce(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { c.MaxConns = 20 })
	engines := make([]*Engine, 12)
	parallel(len(engines), func(i int) {
		e, err := New(background, pool, Options{Store: "s", Unsafe: true})
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		engines[i] = e
	})
	for _, e := range engines {
		if e != nil {
			require.Equal(t, engines[0].StoreID(), e.StoreID())
			require.NoError(t, e.Close())
		}
	}
	for version, want := range map[int]error{len(migrations) + 1: backend.ErrNewerFormat, len(migrations): nil} {
		_, err := pool.Exec(background, `UPDATE lineage_schema SET version = $1`, exec, version)
		require.NoError(t, err)
		e, err := New(background, pool, Options{Store: "s", Unsafe: true})
		require.ErrorIs(t, err, want)
		if err == nil {
			require.NoError(t, e.Close())
		}
	}
}

// TestPartitionedLog spreads the log over partitions, as the manual says: stores go on as before.
//
//test:norace
func TestPartitionedLog(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	before := make(map[string][]string)
	for _, name := range names {
		e := handle(t, pool, name)
		tell(t, e, "before", strings.Repeat("said before ", 1000))
		before[name] = history(t, e)
		require.NoError(t, e.Close())
	}
	_, err := pool.Exec(background, manual(t, "Partitions"), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	for _, name := range names {
		e, other := handle(t, pool, name), handle(t, pool, name)
		require.Equal(t, before[name], history(t, e))
		gone := tell(t, e, "after", strings.Repeat(secret, 1000))
		tell(t, other, "kept", "said after")
		require.NoError(t, gone.Delete(background))
		report, err := e.Collect(background, all)
		require.NoError(t, err)
		require.NotZero(t, report.Records)
		require.Equal(t, history(t, e), history(t, other))
		requireSound(t, handle(t, pool, name))
	}
	var partitions int
	require.NoError(t, pool.QueryRow(background, `SELECT count(DISTINCT tableoid) FROM lineage_log`, exec).Scan(&partitions))
	require.Greater(t, partitions, 1)
}

// TestRemovedStore removes a store, as the manual says, while others and their handles go on.
func TestRemovedStore(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "other")
	for _, e := range []*Engine{e, other} {
		tell(t, e, "a word")
		require.Len(t, snippets(t, searching(t, lineage.New(e), search.Options{}), "word"), 1)
	}
	_, err := pool.Exec(background, strings.ReplaceAll(manual(t, "Removing a store"), "NAME", "s"), pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
	for _, name := range tables {
		var removed, kept int
		require.NoError(t, pool.QueryRow(background, `SELECT count(*) FILTER (WHERE store = $1), count(*) FILTER (WHERE store = $2) FROM `+name, exec, keyOf("s"), keyOf("other")).Scan(&removed, &kept))
		require.Zero(t, removed, name)
		if name == "lineage_log" || name == "lineage_search_text" {
			require.NotZero(t, kept, name)
		}
	}
	_, commit := threadCommit()
	_, err = e.Apply(background, commit, backend.Options{})
	require.ErrorIs(t, err, backend.ErrNotFound)
	_, err = e.Head(background)
	require.ErrorIs(t, err, backend.ErrNotFound)
	tell(t, other, "more")
	requireSound(t, other)
	createThread(t, handle(t, pool, "s"), backend.Full)
}

// TestMonitoring runs the queries of the manual while a store is used, one process holds it and another
// waits.
func TestMonitoring(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	createThread(t, e, backend.Full)
	holder, err := pool.Begin(background)
	require.NoError(t, err)
	defer holder.Rollback(background) //nolint:errcheck // it may have been rolled back
	_, err = holder.Exec(background, `SELECT FROM lineage_store FOR UPDATE`, exec)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, commit := threadCommit()
		_, err := e.Apply(background, commit, backend.Options{})
		done <- err
	}()
	eventually(t, pool, `SELECT count(*) > 0 FROM pg_locks WHERE NOT granted`)
	eventually(t, pool, `SELECT bool_and(xact_start < now() - interval '1 second') FROM pg_stat_activity
		WHERE datname = current_database() AND (state = 'idle in transaction' OR wait_event_type = 'Lock')`)
	queries := strings.Split(strings.TrimSpace(manual(t, "Monitoring")), ";")
	var found []int
	for _, query := range queries[:len(queries)-1] {
		rows, err := pool.Query(background, query, exec)
		require.NoError(t, err, query)
		n := 0
		for rows.Next() {
			n++
		}
		require.NoError(t, rows.Err(), query)
		found = append(found, n)
	}
	require.Equal(t, []int{1, 15, 1, 1, 0, 0}, found)
	require.NoError(t, holder.Rollback(background))
	require.NoError(t, <-done)
}

// A schema that does not exist is named as that.
func TestMissingSchema(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = "nowhere" })
	_, err := New(background, pool, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, sqladapter.ErrNoSchema)
}
