package projecttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// testCheckpoints projects checkpoints of several chats with equal ids, which a database cannot have: the id stays with the
// chat that has it there already, and the others have those of their records.
func testCheckpoints(t *testing.T, s *suite) {
	store, database := newStore(t), s.New(t)
	db := s.open(t, database)
	defer db.Close()
	in := chat.On(store)
	set := func(chatID, id, name string) {
		_, err := in.UpsertChat(bg, chat.Chat{ID: chatID})
		require.NoError(t, err)
		require.NoError(t, in.AddMessage(bg, chat.Message{ID: "m", ChatID: chatID, Name: "user", Data: []byte("1")}))
		_, err = in.CreateCheckpoint(bg, chat.Checkpoint{ID: id, ChatID: chatID, Name: name, MessageID: "m"})
		require.NoError(t, err)
	}
	has := func(chatID, id, name string) {
		t.Helper()
		got, err := sqlchat.On(db).Checkpoint(bg, chatID, name)
		require.NoError(t, err)
		require.Equal(t, id, got.ID)
	}
	other := func(chatID, name string) string {
		got, err := sqlchat.On(db).Checkpoint(bg, chatID, name)
		require.NoError(t, err)
		require.NotEqual(t, "k", got.ID)
		return got.ID
	}
	set("a", "k", "first")
	s.project(t, store, db)
	has("a", "k", "first")
	set("b", "k", "second")
	set("c", "own", "third")
	s.project(t, store, db)
	named := other("b", "second")
	has("c", "own", "third")
	require.Empty(t, differences(t, store, db))
	set("a", "more", "another")
	set("b", "of b", "another")
	s.project(t, store, db)
	has("a", "k", "first")
	has("b", named, "second")
	require.Empty(t, differences(t, store, db))
	require.NoError(t, in.DeleteCheckpoint(bg, "a", "first"))
	s.project(t, store, db)
	has("b", named, "second")
	require.Empty(t, differences(t, store, db))

	fresh := s.open(t, s.New(t))
	defer fresh.Close()
	set("a", "k", "first")
	s.project(t, store, fresh)
	require.Empty(t, differences(t, store, fresh))
}
