package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/project"
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
func places(t testing.TB) func(t testing.TB) projecttest.Database {
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
	return func(t testing.TB) projecttest.Database {
		schema := fmt.Sprint("place", n.Add(1))
		do(t, "CREATE SCHEMA "+schema)
		t.Cleanup(func() { do(t, "DROP SCHEMA "+schema+" CASCADE") })
		dsn := withPath(all, schema)
		return projecttest.Database{
			Open: func(ctx context.Context, o sqladapter.Options) (*sqladapter.DB, error) {
				return postgres.Open(ctx, dsn, o)
			},
			SQL: pool(t, dsn),
		}
	}
}

// A database whose character set does not have a character of a thread gets the others.
func TestProjectOtherCharacterSet(t *testing.T) {
	dsn := pgtest.DSN(t)
	admin, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, admin.Close()) })
	_, err = admin.Exec(`CREATE DATABASE euc ENCODING EUC_JP LOCALE 'C' TEMPLATE template0`)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := admin.Exec(`DROP DATABASE euc`)
		require.NoError(t, err)
	})
	place, err := url.Parse(dsn)
	require.NoError(t, err)
	place.Path = "/euc"
	db, err := postgres.Open(background, place.String(), sqladapter.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store := lineagetest.New(t, lineage.Options{})
	for _, id := range []string{"한국", "日本", "plain", "text"} {
		thread, err := store.CreateThread(background, lineage.ThreadOptions{SourceID: id})
		require.NoError(t, err)
		main, err := thread.Active(background)
		require.NoError(t, err)
		text := "hello"
		if id == "text" {
			text = "10 €"
		}
		_, err = main.Extend(background, lineage.User(text))
		require.NoError(t, err)
	}
	p := &project.Projector{Store: store, DB: db}
	for range 2 {
		report, err := p.Run(background)
		require.NoError(t, err)
		require.Equal(t, 2, report.LeftOutCount)
		for _, l := range report.LeftOut {
			require.Contains(t, []string{"한국", "text"}, l.SourceID)
			require.Contains(t, l.Reason, "EUC_JP")
		}
	}
	main, err := store.FindThread(background, "text")
	require.NoError(t, err)
	active, err := main.Active(background)
	require.NoError(t, err)
	last, err := active.Last(background, 1)
	require.NoError(t, err)
	require.NoError(t, store.Erase(background, last[0].Content))
	report, err := p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 1, report.LeftOutCount, "one can be held now")
	require.NoError(t, store.Values(lineage.Owner{Thread: main.ID()}).Set(background, "k", []byte(`"€"`)))
	report, err = p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 2, report.LeftOutCount, "for a value")
	require.NoError(t, store.Values(lineage.Owner{Thread: main.ID()}).Set(background, "k", []byte(`"e"`)))
	report, err = p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 1, report.LeftOutCount)

	// Values of users and of the store are left out by owner, also where the name cannot be held, and come when all can.
	missing := func() (all []string) {
		t.Helper()
		for d, err := range project.Compare(background, db, store, project.CompareOptions{}) {
			require.NoError(t, err)
			require.Equal(t, project.Missing, d.Kind, d.String())
			all = append(all, d.Table)
		}
		return all
	}
	ada, named, all := lineage.Owner{Scope: lineage.UserScope, Name: "ada"}, lineage.Owner{Scope: lineage.UserScope, Name: "10 €"}, lineage.Owner{Scope: lineage.StoreScope}
	for _, o := range []lineage.Owner{ada, all} {
		require.NoError(t, store.Values(o).Set(background, "plain", []byte(`1`)))
	}
	report, err = p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 1, report.LeftOutCount)
	for _, o := range []lineage.Owner{ada, named, all} {
		require.NoError(t, store.Values(o).Set(background, "k", []byte(`"10 €"`)))
	}
	for range 2 {
		report, err = p.Run(background)
		require.NoError(t, err)
		require.Equal(t, 4, report.LeftOutCount)
		var names []string
		for i := range report.LeftOut {
			names = append(names, report.LeftOut[i].String())
		}
		require.ElementsMatch(t, []string{`thread "한국"`, `values of user "ada"`, `values of user "10 €"`, "values of the store"}, names)
		require.ElementsMatch(t, []string{"chats", "lineage_values", "lineage_values", "lineage_values", "lineage_values", "lineage_values"}, missing())
	}
	require.NoError(t, store.Values(ada).Set(background, "k", []byte(`"10"`)))
	require.NoError(t, store.Values(all).Delete(background, "k"))
	_, err = store.DeleteUser(background, named.Name)
	require.NoError(t, err)
	report, err = p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 1, report.LeftOutCount, "%v", report.LeftOut)
	require.Equal(t, []string{"chats"}, missing())

	// An earlier value that only a later fork inherits.
	require.NoError(t, store.Values(lineage.Owner{Context: active.ID()}).Set(background, "k", []byte(`"€"`)))
	at, err := active.Extend(background, lineage.User("then"))
	require.NoError(t, err)
	require.NoError(t, store.Values(lineage.Owner{Context: active.ID()}).Set(background, "k", []byte(`"e"`)))
	report, err = p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 1, report.LeftOutCount)
	other, err := store.FindThread(background, "plain")
	require.NoError(t, err)
	fork, err := active.Fork(background, lineage.ForkOptions{At: at[0], Thread: other.ID()})
	require.NoError(t, err)
	report, err = p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 2, report.LeftOutCount)
	require.Equal(t, []string{"chats", "chats"}, missing())
	require.NoError(t, fork.Delete(background))
	report, err = p.Run(background)
	require.NoError(t, err)
	require.Equal(t, 1, report.LeftOutCount)
	require.Equal(t, []string{"chats"}, missing())
}

func BenchmarkProject(b *testing.B) {
	projecttest.Bench(b, projecttest.Config{New: places(b)}, func(n int) string { return "$" + strconv.Itoa(n) })
}
