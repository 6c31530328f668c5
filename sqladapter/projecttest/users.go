package projecttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/importing"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// testImportUsers imports chats that got a user in the database or in the store, and one that got
// different users in both.
func testImportUsers(t *testing.T, s *suite) {
	database, store := s.New(t), newStore(t)
	db := s.open(t, database)
	defer db.Close()
	chats, ada, bob := sqlchat.On(db), "ada", "bob"
	for _, id := range []string{"here", "there", "both"} {
		_, err := chats.CreateChat(bg, chat.Chat{ID: id})
		require.NoError(t, err)
		say := say(id+"1", "one")
		say.ChatID = id
		require.NoError(t, chats.AddMessage(bg, say))
	}
	s.doImport(t, db, store)
	in := chat.On(store)
	for _, claim := range []struct {
		in   chat.Store
		id   string
		user *string
	}{{chats, "here", &ada}, {in, "there", &ada}, {chats, "both", &ada}, {in, "both", &bob}} {
		_, err := claim.in.UpdateChat(bg, claim.id, chat.ChatUpdate{UserID: claim.user})
		require.NoError(t, err)
	}
	var problems []string
	for range 2 {
		problems = nil
		_, err := importing.Run(bg, db, store, importing.Options{Problem: func(id string, err error) {
			require.ErrorIs(t, err, chat.ErrOtherUser)
			problems = append(problems, id)
		}})
		require.NoError(t, err)
		require.Equal(t, []string{"both"}, problems)
	}
	for id, user := range map[string]string{"here": ada, "there": ada, "both": bob} {
		c, err := in.Chat(bg, id)
		require.NoError(t, err)
		require.Equal(t, user, c.UserID, id)
	}
}
