package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// TestPagesByKey lists chats with plans that the server makes without knowing the parameters, as it does
// from the sixth page of a connection on. A page, however far into the list, reads about as many rows as
// it has chats, also for a user with few chats, and whether or not the table was analyzed; what is left
// out first is counted in an index.
//
// feature: storage/chat-index
func TestPagesByKey(t *testing.T) {
	const chats = 6_000
	ctx, dsn := context.Background(), pgtest.DSN(t)
	var texts []string
	open := func() *sqladapter.DB {
		db, err := postgres.Open(ctx, dsn+"&plan_cache_mode=force_generic_plan", sqladapter.Options{Connections: 1, Trace: func(text string) { texts = append(texts, text) }})
		require.NoError(t, err)
		return db
	}
	require.NoError(t, open().Close())
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx)
	execApart(t, dsn, fmt.Sprintf(`INSERT INTO chats (id, userid, title, createdat, updatedat)
		SELECT 'c' || lpad(n::text, 6, '0'), CASE WHEN n %% 3000 = 0 THEN 'rare' ELSE 'user' || n %% 10 END, 'title ' || n, n / 3, n / 3 FROM generate_series(0, %d) AS n`, chats-1))
	// ids are those of the chats that the options choose, newest first.
	ids := func(o chat.ListOptions) (ids []string) {
		for n := chats - 1; n >= 0; n-- {
			user := fmt.Sprint("user", n%10)
			if n%3000 == 0 {
				user = "rare"
			}
			if id := fmt.Sprintf("c%06d", n); (o.UserID == "" || o.UserID == user) && strings.HasPrefix(id, o.IDPrefix) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			execApart(t, dsn, `VACUUM ANALYZE chats`)
		}
		for name, o := range map[string]chat.ListOptions{
			"all": {}, "a user's": {UserID: "user3"}, "few": {UserID: "rare"}, "by id": {IDPrefix: "c00"}, "a user's by id": {UserID: "user3", IDPrefix: "c"},
		} {
			name := fmt.Sprintf("%s, analyzed %v", name, analyzed)
			want := ids(o)
			before, found := pagesRead(t, conn), []string(nil)
			db := open()
			texts, o.Limit = nil, 20
			for range 8 {
				for c, err := range sqlchat.On(db).ListChats(ctx, o) {
					require.NoError(t, err)
					found, o.After = append(found, c.ID), c.Page
				}
			}
			require.NoError(t, db.Close())
			require.Equal(t, want[:min(160, len(want))], found, name)
			require.Less(t, pagesRead(t, conn)-before, int64(700), "%s: reading all for each page takes thousands", name)
			plan := genericPlan(t, conn, texts[0], o.UserID, "100", "''", "0", "'c%'", "'%'", "20")
			require.NotContains(t, plan, "Seq Scan on chats", name)
			require.NotContains(t, plan, "  Sort  ", "%s: nothing but rows of equal times is sorted", name)

			db = open()
			texts, o.After, o.Offset = nil, "", len(want)/2
			found = nil
			for c, err := range sqlchat.On(db).ListChats(ctx, o) {
				require.NoError(t, err)
				found = append(found, c.ID)
			}
			require.NoError(t, db.Close())
			require.Equal(t, want[o.Offset:min(o.Offset+20, len(want))], found, name)
			if o.IDPrefix == "" {
				require.Contains(t, texts[0], "OFFSET", name)
				require.LessOrEqual(t, len(texts), 5, "%s: what is left out is not listed", name)
			}
		}
	}
}

// genericPlan returns the server's plan for a statement whose parameters it does not know, the first of which is
// a user if there is one.
func genericPlan(t *testing.T, conn *pgx.Conn, text, user string, args ...string) string {
	t.Helper()
	if user != "" {
		args = append([]string{"'" + user + "'"}, args...)
	}
	var plan strings.Builder
	script := "SET plan_cache_mode = force_generic_plan; PREPARE page AS " + text + "; EXPLAIN EXECUTE page(" + strings.Join(args, ", ") + "); DEALLOCATE page"
	results := conn.PgConn().Exec(context.Background(), script)
	for results.NextResult() {
		for rows := results.ResultReader(); rows.NextRow(); {
			fmt.Fprintf(&plan, "%s\n", rows.Values()[0])
		}
	}
	require.NoError(t, results.Close(), text)
	return plan.String()
}

// TestPagesOfManyChats counts what a page of 20 of many chats of 10 users reads, with statements that the connection has
// prepared: at the start, by key in the middle, for a user, and after an offset. With -v it also compares the time with
// that of one bare statement that reads a page by key: the shortest of 60 of each, interleaved.
//
// feature: storage/chat-index
func TestPagesOfManyChats(t *testing.T) {
	const limit, pages = 20, 20
	chats := sqltest.ManyChats(t, 6_000)
	ctx, dsn := context.Background(), pgtest.DSN(t)
	var statements int
	open := func(settings string) *sqladapter.DB {
		db, err := postgres.Open(ctx, dsn+settings, sqladapter.Options{Connections: 1, Trace: func(string) { statements++ }})
		require.NoError(t, err)
		return db
	}
	require.NoError(t, open("").Close())
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx)
	execApart(t, dsn, fmt.Sprintf(`INSERT INTO chats (id, userid, title, createdat, updatedat)
		SELECT 'c' || lpad(n::text, 7, '0'), 'user' || n %% 10, 'title ' || n, n / 3, n / 3 FROM generate_series(0, %d) AS n`, chats-1))
	execApart(t, dsn, `INSERT INTO messages (id, chatid, name, type, data, createdat) SELECT id || 'm' || n, id, 'user', 'message', '"text"', 0 FROM chats, generate_series(1, 2) AS n`)
	execApart(t, dsn, `VACUUM ANALYZE`)

	list := func(db *sqladapter.DB, o chat.ListOptions) (last string) {
		n := 0
		for c, err := range sqlchat.On(db).ListChats(ctx, o) {
			require.NoError(t, err)
			n, last = n+1, c.Page
		}
		require.Equal(t, limit, n)
		return last
	}
	// after returns the key of the chat in the middle of a list.
	after := func(user string) string {
		db := open("")
		defer db.Close()
		o := chat.ListOptions{UserID: user, Limit: limit, Offset: chats/2 - limit}
		if user != "" {
			o.Offset = chats/20 - limit
		}
		return list(db, o)
	}
	query := func(bare *pgx.Conn) {
		rows, err := bare.Query(ctx, `SELECT "id", "userid", "title", "metadata", "createdat", "updatedat" FROM "chats"
			WHERE ("updatedat", "id") < ($1, $2) ORDER BY "updatedat" DESC, "id" DESC LIMIT 20`, chats/6, "c")
		require.NoError(t, err)
		n := 0
		for rows.Next() {
			n++
		}
		require.NoError(t, rows.Err())
		require.Equal(t, limit, n)
	}
	for _, test := range []struct {
		name    string
		o       chat.ListOptions
		skipped int
	}{
		{"first page", chat.ListOptions{}, 0},
		{"by key, in the middle", chat.ListOptions{After: after("")}, 0},
		{"first page of a user", chat.ListOptions{UserID: "user3"}, 0},
		{"by key, in the middle of a user", chat.ListOptions{UserID: "user3", After: after("user3")}, 0},
		{"oldest first", chat.ListOptions{Oldest: true}, 0},
		{"offset of half", chat.ListOptions{Offset: chats / 2}, chats / 2},
		{"offset of half of a user", chat.ListOptions{UserID: "user3", Offset: chats / 20}, chats / 20},
	} {
		test.o.Limit = limit
		var perPage, fetched, entries float64
		for _, mode := range []string{"force_generic_plan", "auto"} {
			before := readsOf(t, conn)
			db := open("&plan_cache_mode=" + mode)
			list(db, test.o) // prepares the statements
			statements = 0
			for range pages {
				list(db, test.o)
			}
			require.NoError(t, db.Close())
			read := readsOf(t, conn)
			perPage = float64(statements) / pages
			fetched, entries = float64(read.fetched-before.fetched)/(pages+1), float64(read.entries-before.entries)/(pages+1)
			most := 6*limit + test.skipped
			if test.o.UserID != "" && mode == "auto" {
				most += chats / 10 // the first plans of a connection may sort the chats of the user, if these are few
			}
			require.LessOrEqual(t, perPage, 4.0, test.name)
			require.LessOrEqual(t, fetched, float64(most), "%s, %s", test.name, mode)
			require.LessOrEqual(t, entries, float64(most), "%s, %s", test.name, mode)
		}

		ours, theirs := time.Hour, time.Hour
		db := open("")
		bare, err := pgx.Connect(ctx, dsn)
		require.NoError(t, err)
		for range 60 {
			start := time.Now()
			list(db, test.o)
			middle := time.Now()
			query(bare)
			ours, theirs = min(ours, middle.Sub(start)), min(theirs, time.Since(middle))
		}
		require.NoError(t, errors.Join(db.Close(), bare.Close(ctx)))
		t.Logf("%d chats, %s: %.0f statements, %.0f rows and %.0f entries of indexes a page, %.1f times a bare query (%v)",
			chats, test.name, perPage, fetched, entries, float64(ours)/float64(theirs), theirs)
	}
}

// reads counts rows that were read from chats and messages, and entries of their indexes.
type reads struct{ fetched, entries int64 }

// readsOf returns what connections that have ended have read.
func readsOf(t *testing.T, conn *pgx.Conn) (n reads) {
	pagesRead(t, conn)
	err := conn.QueryRow(context.Background(), `SELECT (SELECT SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_user_tables)::bigint,
		(SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes)::bigint`).Scan(&n.fetched, &n.entries)
	require.NoError(t, err)
	return n
}
