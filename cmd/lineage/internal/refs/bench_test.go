package refs

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
	"github.com/lineage-store/lineage/sqladapter/sqlite"
)

// BenchmarkTitle finds one of many threads by its title, in a store and in a database.
func BenchmarkTitle(b *testing.B) {
	count := 10_000
	if testing.Short() {
		count = 20
	}
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
		r := New(store, nil)
		for b.Loop() {
			_, err := r.Thread(ctx, wanted)
			require.NoError(b, err)
		}
	})
	b.Run("database", func(b *testing.B) {
		r := NewChats(sqlchat.On(db), "")
		for b.Loop() {
			_, err := r.Chat(ctx, wanted)
			require.NoError(b, err)
		}
	})
}
