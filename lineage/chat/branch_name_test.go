package chat_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

func TestNextBranchName(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	defer store.Close()
	chats := chat.On(store)
	_, err = chats.CreateChat(ctx, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	for _, name := range []string{"b2", "b2-v2", "b2-vx"} {
		_, err := chats.CreateBranch(ctx, chat.Branch{ChatID: "c", Name: name})
		require.NoError(t, err)
	}
	for _, next := range []struct {
		chatID, current, want string
		known                 []string
	}{
		{"c", "main", "main-v2", nil},
		{"c", "main", "main-v4", []string{"main-v2", "main-v3"}},
		{"c", "b2", "b2-v4", nil}, // b2-v2 and b2-vx are counted
		{"nowhere", "main", "main-v1", nil},
	} {
		name, err := chat.NextBranchName(ctx, chats, next.chatID, next.current, next.known)
		require.NoError(t, err)
		require.Equal(t, next.want, name)
	}
}
