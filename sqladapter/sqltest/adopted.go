package sqltest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// theirs are rows as other programs write them: the searchable text is the JSON of the message,
// including keys.
const theirs = `
INSERT INTO chats (id, "userId", title, metadata, "createdAt", "updatedAt") VALUES ('c', 'ada', 'Theirs', '{"k":"v"}', 1000, 2000);
INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") VALUES
  ('q1', 'c', NULL, 'user', 'message', '{"id":"q1","role":"user","parts":[{"type":"text","text":"first\nzebra here"}]}', 3000),
  ('a1', 'c', 'q1', 'assistant', 'message', '{"id":"a1","role":"assistant","parts":[{"type":"text","text":"the answer"}]}', 3000),
  ('q2', 'c', 'a1', 'user', 'message', '{"id":"q2","role":"user","parts":[{"type":"text","text":"second question"}]}', 4000);
INSERT INTO branches (id, "chatId", name, "headMessageId", "isActive", "createdAt") VALUES ('b1', 'c', 'main', 'q2', {true}, 3000);
INSERT INTO checkpoints (id, "chatId", name, "messageId", "createdAt") VALUES ('k1', 'c', 'here', 'a1', 3500);
INSERT INTO messages_fts ("messageId", "chatId", name, content) VALUES
  ('q1', 'c', 'user', '{"id":"q1","role":"user","parts":[{"type":"text","text":"first\nzebra here"}]}'),
  ('a1', 'c', 'assistant', '{"id":"a1","role":"assistant","parts":[{"type":"text","text":"the answer"}]}'),
  ('q2', 'c', 'user', '{"id":"q2","role":"user","parts":[{"type":"text","text":"second question"}]}');
`

// testAdopted opens a database of another program and continues in it; then the other program
// continues.
//
// feature: storage/adopted
func testAdopted(t *testing.T, c Config) {
	p := c.New(t)
	yes := "1"
	if c.Dialect.Name() == "postgres" {
		yes = "TRUE"
	}
	require.NoError(t, p.Exec(background, c.Documented))
	require.NoError(t, p.Exec(background, strings.ReplaceAll(theirs, "{true}", yes)))
	db := open(t, p)
	s := sqlchat.On(db)

	found, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Equal(t, "Theirs", found.Title)
	require.EqualValues(t, 2000, found.UpdatedAt)
	requireChain(t, s, "c", "q2", "q1", "a1", "q2")
	requireCounts(t, s, "c", map[string]int{"main": 3})
	requireFound(t, s, "c", "zebra", "q1")
	requireFound(t, s, "c", "parts")
	requireFound(t, s, "c", "question OR answer", "q2", "a1")

	_, err = s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: "b1", ExpectedHead: "q2", Messages: []chat.Message{text("", "a2", "", "ours, zebra")}})
	require.NoError(t, err)
	requireChain(t, s, "c", "a2", "q1", "a1", "q2", "a2")
	requireCounts(t, s, "c", map[string]int{"main": 4})

	// The other program adds messages and overwrites one of ours.
	require.NoError(t, p.Exec(background, `
INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") VALUES ('q3', 'c', 'a2', 'user', 'message', '{"parts":[{"type":"text","text":"their zebra"}]}', 5000);
UPDATE branches SET "headMessageId" = 'q3' WHERE id = 'b1';`))
	requireCounts(t, s, "c", map[string]int{"main": 5})
	requireFound(t, s, "c", "zebra", "q1", "a2", "q3")
	require.NoError(t, p.Exec(background, `UPDATE messages SET data = '{"parts":[{"type":"text","text":"an okapi now"}]}' WHERE id = 'a2'`))
	requireFound(t, s, "c", "zebra", "q1", "q3")
	requireFound(t, s, "c", "okapi", "a2")
	requireCounts(t, s, "c", map[string]int{"main": 5})

	// Continue a message of the other program that has not been indexed.
	require.NoError(t, p.Exec(background, `INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") VALUES ('q4', 'c', 'q3', 'user', NULL, '"four"', 5000)`))
	require.NoError(t, s.AddMessage(background, text("c", "q5", "q4", "five")))
	_, err = s.CreateBranch(background, chat.Branch{ChatID: "c", Name: "deep", HeadMessageID: "q5"})
	require.NoError(t, err)
	requireCounts(t, s, "c", map[string]int{"main": 5, "deep": 7})

	deleted, err := s.DeleteChat(background, "c", chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, deleted)
	for _, table := range []string{"chats", "messages", "branches", "checkpoints", "messages_fts", "lineage_messages"} {
		left := -1
		_, err := db.Reader().Get(background, sqladapter.Statement(`SELECT COUNT(*) AS "count" FROM "`+table+`"`), nil, &left)
		require.NoError(t, err)
		require.Zero(t, left, "rows left in %s", table)
	}
	grow(t, s, "c", 2)
	requireFound(t, s, "c", "zebra")
	requireFound(t, s, "c", "message", "c.0", "c.1")
}

func requireChain(t testing.TB, s chat.Store, chatID, id string, want ...string) {
	t.Helper()
	var got []string
	for m, err := range s.MessageChain(background, chatID, id) {
		require.NoError(t, err)
		got = append(got, m.ID)
	}
	require.Equal(t, want, got)
}

func requireCounts(t testing.TB, s chat.Store, chatID string, want map[string]int) {
	t.Helper()
	infos, err := s.ListBranches(background, chatID)
	require.NoError(t, err)
	got := map[string]int{}
	for _, b := range infos {
		got[b.Name] = b.MessageCount
	}
	require.Equal(t, want, got)
}

func requireFound(t testing.TB, s chat.Store, chatID, query string, want ...string) {
	t.Helper()
	require.ElementsMatch(t, want, idsFound(t, s, chatID, query), fmt.Sprintf("%q", query))
}

func idsFound(t testing.TB, s chat.Store, chatID, query string) []string {
	t.Helper()
	results, err := s.SearchMessages(background, chatID, query, chat.SearchOptions{Limit: 1 << 20})
	require.NoError(t, err, "%q", query)
	ids := []string{}
	for _, r := range results {
		ids = append(ids, r.Message.ID)
	}
	return ids
}

// RunAdopted runs the test on a database of another program.
func RunAdopted(t *testing.T, c Config) { testAdopted(t, c) }
