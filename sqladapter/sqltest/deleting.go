package sqltest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// largeChat creates a chat with two chains, each with more messages than a transaction deletes,
// with branches, checkpoints and an origin.
func largeChat(t testing.TB, s chat.Store, id string) {
	const messages = 1500
	grow(t, s, id, messages)
	var side []chat.Message
	for i := range messages {
		side = append(side, text("", fmt.Sprint(id, ".side.", i), "", "an aside"))
	}
	side[7].Origin = chat.Origin{UserID: "bob"}
	_, err := s.Append(background, chat.AppendRequest{
		ChatID: id, NewBranch: &chat.Branch{ID: id + ".side", Name: "side", HeadMessageID: chat.Ref(id + ".70")}, Messages: side,
	})
	require.NoError(t, err)
	_, err = s.CreateCheckpoint(background, chat.Checkpoint{ID: id + ".here", ChatID: id, Name: "here", MessageID: id + ".1400"})
	require.NoError(t, err)
}

// requireHidden requires that nothing of a large chat is found.
func requireHidden(t testing.TB, db *sqladapter.DB, id string) {
	t.Helper()
	s := sqlchat.On(db)
	c, err := s.Chat(background, id)
	require.NoError(t, err)
	require.Nil(t, c)
	for _, o := range []chat.ListOptions{{}, {UserID: "ada"}, {Oldest: true}, {UserID: "ada", Oldest: true}} {
		for c, err := range s.ListChats(background, o) {
			require.NoError(t, err)
			require.NotEqual(t, id, c.ID)
		}
	}
	for _, m := range []string{".0", ".70", ".1499", ".side.0", ".side.1499"} {
		found, err := s.Message(background, id, id+m)
		require.NoError(t, err)
		require.Nil(t, found)
		n, err := s.CountMessages(background, id, id+m)
		require.NoError(t, err)
		require.Zero(t, n)
		has, err := s.HasChildren(background, id, id+m)
		require.NoError(t, err)
		require.False(t, has)
		for range s.MessageChain(background, id, id+m) {
			t.Fatal("a chain")
		}
	}
	for _, err := range s.Messages(background, id) {
		require.ErrorIs(t, err, chat.ErrNotFound)
	}
	branches, err := s.ListBranches(background, id)
	require.NoError(t, err)
	require.Empty(t, branches)
	active, err := s.ActiveBranch(background, id)
	require.NoError(t, err)
	require.Nil(t, active)
	names, err := s.BranchNames(background, id, "", 10)
	require.NoError(t, err)
	require.Empty(t, names)
	checkpoints, err := s.ListCheckpoints(background, id)
	require.NoError(t, err)
	require.Empty(t, checkpoints)
	g, err := s.Graph(background, id)
	require.NoError(t, err)
	require.Empty(t, g.Nodes)
	requireFound(t, s, id, "message OR aside")
	found, err := sqlchat.SearchAll(background, db, "", "message OR aside", chat.SearchOptions{Limit: 10_000})
	require.NoError(t, err)
	for _, r := range found {
		require.NotEqual(t, id, r.Message.ChatID)
	}
	_, err = s.UpdateChat(background, id, chat.ChatUpdate{Metadata: []byte(`{}`)})
	require.ErrorIs(t, err, chat.ErrNotFound)
	require.ErrorIs(t, s.UpdateBranchHead(background, id, id+".side", ""), chat.ErrNotFound)
	require.ErrorIs(t, s.AddMessage(background, text(id, "new", "", "late")), chat.ErrNotFound)
}

func requireNoRows(t testing.TB, db *sqladapter.DB, id string) {
	t.Helper()
	for table, column := range map[string]string{
		"chats": "id", "messages": "chatId", "branches": "chatId", "checkpoints": "chatId", "messages_fts": "chatId", "lineage_messages": "chatId",
		"lineage_deleting": "chatId", "lineage_origins": "messageId",
	} {
		left := -1
		_, err := db.Reader().Get(background, sqladapter.Statement(`SELECT COUNT(*) AS "count" FROM "`+table+`" WHERE "`+column+`" LIKE ?`), []any{id + "%"}, &left)
		require.NoError(t, err)
		require.Zero(t, left, "rows left in %s", table)
	}
}

// testDeletingInParts interrupts the deletion of a large chat at every point. The chat is no longer
// visible, and its deletion is completed: by another call, by the next program that opens the
// database, or when its ids are used again.
//
// feature: storage/delete-parts
func testDeletingInParts(t *testing.T, c Config) {
	p := c.New(t)
	var stopAt func(text string) bool
	var stop context.CancelFunc
	db, err := c.OpenWith(background, p, sqladapter.Options{Trace: func(text string) {
		if stopAt != nil && stopAt(text) {
			stopAt = nil
			stop()
		}
	}})
	require.NoError(t, err)
	s := sqlchat.On(db)
	grow(t, s, "other", 10)
	deletions := 0
	end := func(after int) func(text string) bool {
		deletions = 0
		return func(text string) bool {
			if strings.HasPrefix(text, "DELETE") && strings.Contains(text, "messages") && !strings.Contains(text, "lineage_") && !strings.Contains(text, "messages_fts") {
				deletions++
			}
			return deletions > after
		}
	}
	interrupt := func(id string, after int) {
		var ctx context.Context
		ctx, stop = context.WithCancel(background)
		defer stop()
		stopAt = end(after)
		_, err := s.DeleteChat(ctx, id, chat.DeleteOptions{})
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, stopAt)
	}
	for after := range 3 {
		id := fmt.Sprint("large", after)
		largeChat(t, s, id)
		ok, err := s.DeleteChat(background, id, chat.DeleteOptions{UserID: "bob"})
		require.NoError(t, err)
		require.False(t, ok)
		interrupt(id, after)
		requireHidden(t, db, id)
		switch after {
		case 0: // the ids are used again
			largeChat(t, s, id)
			requireChain(t, s, id, id+".2", id+".0", id+".1", id+".2")
			require.Len(t, idsFound(t, s, id, "aside"), 1500)
			interrupt(id, 1)
			require.NoError(t, s.AddMessage(background, text("other", id+".0", "", "reused")))
			require.NoError(t, s.AddMessage(background, text("other", id+".side.3", "", "reused")))
			requireFound(t, s, "other", "reused", id+".0", id+".side.3")
		case 1: // by another call
			ok, err := s.DeleteChat(background, id, chat.DeleteOptions{})
			require.NoError(t, err)
			require.True(t, ok)
			ok, err = s.DeleteChat(background, id, chat.DeleteOptions{})
			require.NoError(t, err)
			require.False(t, ok)
			requireNoRows(t, db, id)
		case 2: // by a program that opens the database
			requireHidden(t, open(t, p), id)
			requireNoRows(t, db, id)
		}
	}
	requireCounts(t, s, "other", map[string]int{"main": 10})
	require.NoError(t, db.Close())
}

// testDeletingReferred deletes a large chat that another one refers to, as other programs allow:
// that fails, and the chat remains.
func testDeletingReferred(t *testing.T, c Config) {
	p := c.New(t)
	s := sqlchat.On(open(t, p))
	largeChat(t, s, "large")
	grow(t, s, "other", 1)
	require.NoError(t, p.Exec(background, `UPDATE messages SET "parentId" = 'large.3' WHERE id = 'other.0'`))
	_, err := s.DeleteChat(background, "large", chat.DeleteOptions{})
	require.Error(t, err)
	requireCounts(t, s, "large", map[string]int{"main": 1500, "side": 1571})
	require.NoError(t, p.Exec(background, `UPDATE messages SET "parentId" = NULL WHERE id = 'other.0'; UPDATE messages SET "parentId" = 'large.9' WHERE id = 'large.8'`))
	ok, err := s.DeleteChat(background, "large", chat.DeleteOptions{}) // with a message that is its own ancestor
	require.NoError(t, err)
	require.True(t, ok)
}
