package postgres_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/postgres"
)

// TestListingByMetadata filters many chats by metadata: with the documented index if few match, in
// list order if many do. Postgres uses the index whether or not the table was analyzed, for generic
// and custom plans.
//
// feature: storage/metadata-index
func TestListingByMetadata(t *testing.T) {
	campaign.Long(t)
	const chats = 60_000
	ctx, dsn := context.Background(), pgtest.DSN(t)
	var texts []string
	db, err := postgres.Open(ctx, dsn, sqladapter.Options{Connections: 1, Trace: func(text string) { texts = append(texts, text) }})
	require.NoError(t, err)
	defer db.Close()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, fmt.Sprintf(`INSERT INTO chats (id, userid, metadata, createdat, updatedat) SELECT 'c' || n, 'user' || n %% 2,
		jsonb_build_object('archived', n %% 2 = 0, 'n', n, 'tags', jsonb_build_array('all', n %% 1000, 'half ' || n %% 2), 'nested', jsonb_build_object('k', jsonb_build_array(n %% 500))),
		n / 3, n / 3 FROM generate_series(1, %d) AS n`, chats))
	require.NoError(t, err)
	is := func(key string, value any) chat.MetadataFilter { return chat.MetadataFilter{Key: key, Value: value} }
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			_, err = conn.Exec(ctx, `ANALYZE chats`)
			require.NoError(t, err)
		}
		for name, test := range map[string]struct {
			o     chat.ListOptions
			first string
			want  int
			few   bool
		}{
			"no chat has it":     {chat.ListOptions{Metadata: []chat.MetadataFilter{is("tags", "support")}}, "", 0, true},
			"few chats":          {chat.ListOptions{Metadata: []chat.MetadataFilter{is("tags", 7)}}, "c59007", 10, true},
			"few of a user":      {chat.ListOptions{UserID: "user1", Metadata: []chat.MetadataFilter{is("tags", 7)}}, "c59007", 10, true},
			"none of a user":     {chat.ListOptions{UserID: "user0", Metadata: []chat.MetadataFilter{is("tags", 7)}}, "", 0, true},
			"inside an object":   {chat.ListOptions{Oldest: true, Metadata: []chat.MetadataFilter{is("nested.k", 499)}}, "c499", 10, true},
			"half of the chats":  {chat.ListOptions{Metadata: []chat.MetadataFilter{is("archived", true)}}, "c60000", 10, false},
			"all chats":          {chat.ListOptions{Metadata: []chat.MetadataFilter{is("tags", "all")}}, "c60000", 10, false},
			"two values":         {chat.ListOptions{Metadata: []chat.MetadataFilter{is("tags", "half 1"), is("tags", 7)}}, "c59007", 10, true},
			"none with anything": {chat.ListOptions{Metadata: []chat.MetadataFilter{is("tags", "support"), is("tags", "all")}}, "", 0, true},
		} {
			texts, test.o.Limit = nil, 10
			var found []chat.ChatInfo
			for c, err := range db.Chats().ListChats(ctx, test.o) {
				require.NoError(t, err)
				found = append(found, c)
			}
			require.Len(t, found, test.want, name)
			if test.want > 0 {
				require.Equal(t, test.first, found[0].ID, name)
			}
			require.LessOrEqual(t, len(texts), 5, name)
			if !test.few || test.o.UserID != "" && !analyzed { // then the server assumes few chats per user
				continue
			}
			at := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, "MATERIALIZED") })
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				plan := planOf(t, conn, mode, texts[at], test.o)
				require.Contains(t, plan, "Bitmap Index Scan on idx_chats_metadata", "%s, analyzed %v", name, analyzed)
				require.NotContains(t, plan, "Seq Scan on chats", "%s, analyzed %v", name, analyzed)
			}
		}
	}
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
			args = slices.Insert(args, len(args)-1, "'"+arg.(string)+"'")
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
