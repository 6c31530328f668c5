package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
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
		_, err := db.Chats().CreateChat(ctx, chat.Chat{ID: fmt.Sprint("c", i), UserID: "ada", Metadata: []byte(`{"k":"v"}`)})
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
			for c, err := range db.Chats().ListChats(ctx, o) {
				require.NoError(t, err)
				n, o.After = n+1, c.Page
			}
			require.Equal(t, 10, n)
			require.LessOrEqual(t, len(traced), 3)
			var plan strings.Builder
			rows, err := other.QueryContext(ctx, "EXPLAIN QUERY PLAN "+traced[0], make([]any, strings.Count(traced[0], "?"))...)
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
	}
}
