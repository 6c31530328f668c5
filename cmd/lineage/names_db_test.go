package main

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

func TestChatsOfADatabaseAreFoundByTheirTitles(t *testing.T) {
	ctx := context.Background()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "chats.db"), sqladapter.Options{})
	require.NoError(t, err)
	defer db.Close()
	for id, title := range map[string]string{"first": "Trip to Porto", "second": "Trip to Lisbon", "third": "Groceries", "fourth": "groceries"} {
		_, err := sqlchat.On(db).CreateChat(ctx, chat.Chat{ID: id, UserID: "ada", Title: title})
		require.NoError(t, err)
	}
	r := refs.NewChats(sqlchat.On(db), "")
	for _, name := range []string{"second", "trip TO lisbon", "seco", "cond"} {
		found, err := r.Chat(ctx, name)
		require.NoError(t, err, name)
		require.Equal(t, "second", found.ID)
		require.Equal(t, "ada", found.UserID, "all of the thread is answered")
	}
	_, err = r.Chat(ctx, "groceries")
	var ambiguous *refs.AmbiguousError
	require.ErrorAs(t, err, &ambiguous)
	_, err = r.Chat(ctx, "Trip to Lisbo")
	var unknown *refs.UnknownError
	require.ErrorAs(t, err, &unknown)
	require.Contains(t, unknown.Near, "Trip to Lisbon")
}

// BenchmarkTitle finds one of many threads by its title, in a store and in a database.
func BenchmarkTitle(b *testing.B) {
	count := campaign.BenchMessages(b, 10_000)
	ctx := context.Background()
	store, err := lineage.Open(ctx, b.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(b, err)
	defer store.Close()
	db, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "chats.db"), sqladapter.Options{})
	require.NoError(b, err)
	defer db.Close()
	for i := range count {
		title := fmt.Sprint("Conversation number ", i)
		_, err := store.CreateThread(ctx, lineage.ThreadOptions{Title: title, UserID: "ada"})
		require.NoError(b, err)
		_, err = sqlchat.On(db).CreateChat(ctx, chat.Chat{ID: fmt.Sprint("thread", i), Title: title, UserID: "ada"})
		require.NoError(b, err)
	}
	wanted := fmt.Sprint("conversation number ", count/2)
	b.Run("store", func(b *testing.B) {
		r := refs.New(store, nil)
		for b.Loop() {
			_, err := r.Thread(ctx, wanted)
			require.NoError(b, err)
		}
	})
	b.Run("database", func(b *testing.B) {
		r := refs.NewChats(sqlchat.On(db), "")
		for b.Loop() {
			_, err := r.Chat(ctx, wanted)
			require.NoError(b, err)
		}
	})
}
