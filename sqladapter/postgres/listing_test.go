package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// TestListingByMetadata filters many chats by metadata: with the documented index if few match, in
// list order if many do. Postgres uses the index whether or not the table was analyzed, for generic
// and custom plans. With -v it says how many pages of the table and its indexes each listing reads, and
// how long that takes.
//
// feature: storage/metadata-index
func TestListingByMetadata(t *testing.T) {
	campaign.Long(t)
	chats, few := sqltest.ManyChats(t, 60_000), (postgres.Dialect{}).Syntax().Metadata.Few
	ctx, dsn := context.Background(), pgtest.DSN(t)
	var texts []string
	open := func() *sqladapter.DB {
		db, err := postgres.Open(ctx, dsn, sqladapter.Options{Connections: 1, Trace: func(text string) { texts = append(texts, text) }})
		require.NoError(t, err)
		return db
	}
	require.NoError(t, open().Close())
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx)
	execApart(t, dsn, fmt.Sprintf(`INSERT INTO chats (id, userid, metadata, createdat, updatedat) SELECT 'c' || n, 'user' || n %% 2,
		jsonb_build_object('archived', n %% 2 = 0, 'n', n, 'tags', jsonb_build_array('all', n %% 1000, 'half ' || n %% 2), 'nested', jsonb_build_object('k', jsonb_build_array(n %% 500))),
		n / 3, n / 3 FROM generate_series(1, %d) AS n`, chats))
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			execApart(t, dsn, `VACUUM ANALYZE chats`)
		}
		for _, test := range sqltest.MetadataListings() {
			want, matching := test.Want(chats)
			before, found := pagesRead(t, conn), []string(nil)
			db := open()
			texts = nil
			start := time.Now()
			for c, err := range sqlchat.On(db).ListChats(ctx, test.Options) {
				require.NoError(t, err)
				found = append(found, c.ID)
			}
			took := time.Since(start)
			require.NoError(t, db.Close())
			require.Equal(t, want, found, test.Name)
			require.LessOrEqual(t, len(texts), 5, test.Name)
			pages := pagesRead(t, conn) - before
			t.Logf("%s: %d of %d match, %d pages, %v, analyzed %v", test.Name, matching, chats, pages, took, analyzed)
			if analyzed {
				require.Less(t, pages, int64(1000+chats/150), "%s: reading all chats takes one for each 34", test.Name)
			}
			if matching > few || test.Options.UserID != "" && !analyzed { // then the server assumes few chats per user
				continue
			}
			at := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, "MATERIALIZED") })
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				plan := planOf(t, conn, mode, texts[at], test.Options)
				require.Contains(t, plan, "Bitmap Index Scan on idx_chats_metadata", "%s, analyzed %v", test.Name, analyzed)
				require.NotContains(t, plan, "Seq Scan on chats", "%s, analyzed %v", test.Name, analyzed)
			}
		}
	}
}

// execApart executes a statement in a connection of its own, whose reads are counted when it ends.
func execApart(t *testing.T, dsn, statement string) {
	own, err := pgx.Connect(context.Background(), dsn)
	require.NoError(t, err)
	_, err = own.Exec(context.Background(), statement)
	require.NoError(t, err)
	require.NoError(t, own.Close(context.Background()))
}

// pagesRead returns how many pages of table chats and its indexes were read by connections that have
// ended. It waits for those that are about to.
func pagesRead(t *testing.T, conn *pgx.Conn) (pages int64) {
	ctx := context.Background()
	require.Eventually(t, func() bool {
		var others int
		err := conn.QueryRow(ctx, `SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`).Scan(&others)
		return err == nil && others == 0
	}, time.Minute, time.Millisecond)
	err := conn.QueryRow(ctx, `SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit
		FROM pg_statio_user_tables WHERE relname = 'chats'`).Scan(&pages)
	require.NoError(t, err)
	return pages
}

// planOf returns the server's plan for the statement that reads the keys of a listing.
func planOf(t *testing.T, conn *pgx.Conn, mode, text string, o chat.ListOptions) string {
	t.Helper()
	syntax := postgres.Dialect{}.Syntax()
	args := []string{"0", "1000000", "''"}
	if o.UserID != "" {
		args = append([]string{"'" + o.UserID + "'"}, args...)
	}
	for _, f := range o.Metadata {
		value, err := json.Marshal(f.Value)
		require.NoError(t, err)
		for _, arg := range syntax.Metadata.Args(sqladapter.MetadataValue{Path: strings.Split(f.Key, "."), JSON: value}) {
			args = slices.Insert(args, len(args)-1, "'"+string(arg.(json.RawMessage))+"'")
		}
	}
	var plan strings.Builder
	script := "SET plan_cache_mode = " + mode + "; PREPARE list AS " + text + "; EXPLAIN EXECUTE list(" + strings.Join(args, ", ") + "); DEALLOCATE list"
	results := conn.PgConn().Exec(context.Background(), script)
	for results.NextResult() {
		for rows := results.ResultReader(); rows.NextRow(); {
			fmt.Fprintf(&plan, "%s\n", rows.Values()[0])
		}
	}
	require.NoError(t, results.Close())
	return plan.String()
}
