package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
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
