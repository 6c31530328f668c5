package chat_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
)

// TestCheckpointKeepsItsMessages: a checkpoint is a way to see messages too.
func TestCheckpointKeepsItsMessages(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "c", UserID: "ada"})
	require.NoError(t, err)
	side, err := thread.CreateBranch(ctx, "side", lineage.BranchOptions{Switch: true})
	require.NoError(t, err)
	_, err = side.Extend(ctx, lineage.User("one"), lineage.User("two"))
	require.NoError(t, err)
	_, err = thread.SetCheckpoint(ctx, "here", lineage.CheckpointOptions{})
	require.NoError(t, err)
	require.NoError(t, thread.DeleteBranch(ctx, "side"))

	chats := chat.On(store)
	k, err := chats.Checkpoint(ctx, "c", "here")
	require.NoError(t, err)
	m, err := chats.Message(ctx, "c", k.MessageID)
	require.NoError(t, err)
	require.NotNil(t, m)
	graph, err := chats.Graph(ctx, "c")
	require.NoError(t, err)
	require.Len(t, graph.Nodes, 2)
}

// TestThreadReaderAgrees: what copies chats elsewhere reads what the chats answer.
func TestThreadReaderAgrees(t *testing.T) {
	ctx := context.Background()
	store, err := lineage.Open(ctx, t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	defer store.Close()
	chats := chat.On(store)
	_, err = chats.CreateChat(ctx, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)
	b, err := chats.ActiveBranch(ctx, "c")
	require.NoError(t, err)
	_, err = chats.Append(ctx, chat.AppendRequest{ChatID: "c", BranchID: b.ID, Messages: []chat.Message{{ID: "m1", Name: "user", Data: json.RawMessage(`"own"`)}}})
	require.NoError(t, err)
	thread, err := store.FindThread(ctx, "c")
	require.NoError(t, err)
	main, err := thread.Active(ctx)
	require.NoError(t, err)
	_, err = main.Extend(ctx, lineage.User("not the chat's own"))
	require.NoError(t, err)

	record, err := store.View().Thread(ctx, thread.ID())
	require.NoError(t, err)
	r := chat.NewThreadReader(store, write.Of(store).Engine(), record, nil)
	tip, err := main.Tip(ctx)
	require.NoError(t, err)
	var read []chat.Message
	parent := chat.Ref("")
	for step, err := range store.View().Path(ctx, tip, lineage.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		m, err := r.Message(ctx, step, parent)
		require.NoError(t, err)
		read, parent = append(read, m), chat.Ref(m.ID)
	}
	var want []chat.Message
	for m, err := range chats.Messages(ctx, "c") {
		require.NoError(t, err)
		want = append(want, m)
	}
	require.Equal(t, want, read)
	require.Equal(t, "m1", read[0].ID)
	require.Len(t, read, 2)
}
