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

// foreignChain returns a script that creates a chat with a branch and a chain of messages, as
// another program does.
func foreignChain(id string, messages int, yes string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `INSERT INTO chats (id, "userId", "createdAt", "updatedAt") VALUES ('%s', 'ada', 1, 1);`+"\n", id)
	parent := "NULL"
	for i := range messages {
		if i%500 == 0 {
			b.WriteString(`INSERT INTO messages (id, "chatId", "parentId", name, data, "createdAt") VALUES`)
		}
		end := ","
		if i%500 == 499 || i == messages-1 {
			end = ";"
		}
		fmt.Fprintf(&b, ` ('%s.%d', '%s', %s, 'user', '"zebra number %d"', 1)%s`+"\n", id, i, id, parent, i, end)
		parent = fmt.Sprintf("'%s.%d'", id, i)
	}
	fmt.Fprintf(&b, `INSERT INTO branches (id, "chatId", name, "headMessageId", "isActive", "createdAt") VALUES ('%s.b', '%s', 'main', %s, %s, 1);`, id, id, parent, yes)
	return b.String()
}

// testLargeChatOfAnother saves to a large chat of another program. The save does not wait for indexing, and reads
// are correct before a search has done it.
//
// feature: storage/search-others
func testLargeChatOfAnother(t *testing.T, c Config) {
	const messages = 12_000
	yes := "1"
	if c.Dialect.Name() == "postgres" {
		yes = "TRUE"
	}
	p := c.New(t)
	open(t, p)
	require.NoError(t, p.Exec(background, foreignChain("c", messages, yes)))
	var traced []string
	db, err := c.OpenWith(background, p, sqladapter.Options{Trace: func(text string) { traced = append(traced, text) }})
	require.NoError(t, err)
	s := sqlchat.On(db)
	head := chat.Ref(fmt.Sprint("c.", messages-1))
	for i := range 3 {
		traced = nil
		head, err = s.Append(background, chat.AppendRequest{
			ChatID: "c", BranchID: "c.b", ExpectedHead: head, Messages: []chat.Message{text("", fmt.Sprint("c.ours", i), "", "ours")},
		})
		require.NoError(t, err)
		require.Less(t, len(traced), 25, "statements of a save")
	}
	requireCounts(t, s, "c", map[string]int{"main": messages + 3})
	for id, want := range map[string]int{"c.4321": 4322, "c.11500": 11_501, "c.ours2": messages + 3} {
		depth, err := s.CountMessages(background, "c", id)
		require.NoError(t, err)
		require.Equal(t, want, depth)
	}
	if c.Dialect.Search().Counted {
		known := 0
		_, err := db.Reader().Get(background, `SELECT "known" FROM "lineage_chats" WHERE "chatId" = 'c'`, nil, &known)
		require.NoError(t, err)
		require.Equal(t, 3, known)
	}
	requireFound(t, s, "c", `"number 777" OR "number 5999" OR ours`, "c.777", "c.5999", "c.ours0", "c.ours1", "c.ours2")
	require.NoError(t, p.Exec(background, `UPDATE messages SET "parentId" = 'c.11999' WHERE id = 'c.0'`))
	_, err = s.CountMessages(background, "c", "c.11500")
	require.ErrorIs(t, err, sqladapter.ErrCorrupt)
	require.NoError(t, db.Close())
}
