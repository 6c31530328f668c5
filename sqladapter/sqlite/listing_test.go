package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
	"github.com/lineage-store/lineage/sqladapter/sqltest"
)

// TestListingByIndex reads pages in index order, also in the middle of the list, with a number of
// statements independent of the number of chats.
//
// feature: storage/chat-index
func TestListingByIndex(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "chats.db")
	var traced []string
	db, err := sqlite.Open(ctx, path, sqladapter.Options{Trace: func(sql string) { traced = append(traced, sql) }})
	require.NoError(t, err)
	defer db.Close()
	for i := range 300 {
		_, err := sqlchat.On(db).CreateChat(ctx, chat.Chat{ID: fmt.Sprint("c", i), UserID: "ada", Metadata: []byte(`{"k":"v"}`)})
		require.NoError(t, err)
	}
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer other.Close()
	for index, o := range map[string]chat.ListOptions{
		"idx_chats_updatedAt":        {Limit: 10, Metadata: []chat.MetadataFilter{{Key: "k", Value: "v"}}},
		"idx_chats_userId_updatedAt": {Limit: 10, UserID: "ada", TitlePrefix: ""},
	} {
		for range 3 {
			traced = nil
			n := 0
			for c, err := range sqlchat.On(db).ListChats(ctx, o) {
				require.NoError(t, err)
				n, o.After = n+1, c.Page
			}
			require.Equal(t, 10, n)
			require.LessOrEqual(t, len(traced), 3)
			requireInOrder(t, other, traced[0], index)
		}
	}
}

// TestListingByMetadata filters many chats by metadata. The database tests each chat in list order, so
// a page is read when enough chats match, and the whole list otherwise.
func TestListingByMetadata(t *testing.T) {
	campaign.Long(t)
	chats := sqltest.ManyChats(t, 10_000)
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "chats.db")
	var traced []string
	db, err := sqlite.Open(ctx, path, sqladapter.Options{Trace: func(sql string) { traced = append(traced, sql) }})
	require.NoError(t, err)
	defer db.Close()
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer other.Close()
	_, err = other.ExecContext(ctx, `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
		INSERT INTO chats (id, userId, metadata, createdAt, updatedAt) SELECT 'c' || n, 'user' || (n % 2),
		printf('{"archived":%s,"n":%d,"tags":["all",%d,"half %d"],"nested":{"k":[%d]}}', iif(n % 2, 'false', 'true'), n, n % 1000, n % 2, n % 500), n / 3, n / 3
		FROM numbers`, chats)
	require.NoError(t, err)
	for _, test := range sqltest.MetadataListings() {
		traced = nil
		want, matching := test.Want(chats)
		var found []string
		start := time.Now()
		for c, err := range sqlchat.On(db).ListChats(ctx, test.Options) {
			require.NoError(t, err)
			found = append(found, c.ID)
		}
		t.Logf("%s: %d of %d match, %v", test.Name, matching, chats, time.Since(start))
		require.Equal(t, want, found, test.Name)
		require.LessOrEqual(t, len(traced), 6, test.Name)
		index := "idx_chats_updatedAt"
		if test.Options.UserID != "" {
			index = "idx_chats_userId_updatedAt"
		}
		at := slices.IndexFunc(traced, func(text string) bool { return strings.Contains(text, "ORDER BY") })
		requireInOrder(t, other, traced[at], index)
	}
}

// requireInOrder requires that a statement reads chats in the order of an index.
func requireInOrder(t *testing.T, db *sql.DB, statement, index string) {
	t.Helper()
	var plan strings.Builder
	rows, err := db.Query("EXPLAIN QUERY PLAN "+statement, make([]any, strings.Count(statement, "?"))...)
	require.NoError(t, err)
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan.WriteString(detail + "\n")
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan.String(), index)
	require.NotContains(t, plan.String(), "USE TEMP B-TREE FOR ORDER BY\n", "at most the last term is sorted")
}
