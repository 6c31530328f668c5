package sqltest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
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

// testLearningInBackground saves to a large chat of another program. The save does not wait for
// indexing, reads are correct before it is done, and Close stops it.
//
// feature: storage/search-background
func testLearningInBackground(t *testing.T, c Config) {
	const messages = 6000
	yes := "1"
	if c.Dialect.Name() == "postgres" {
		yes = "TRUE"
	}
	p := c.New(t)
	open(t, p)
	var mu sync.Mutex
	var traced []string
	closed := make(map[string]bool) // chats whose database is closed
	appending := func(id string) (before int, db *sqladapter.DB) {
		require.NoError(t, p.Exec(background, foreignChain(id, messages, yes)))
		db, err := c.OpenWith(background, p, sqladapter.Options{Trace: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			if closed[id] {
				t.Errorf("a statement after Close: %s", text)
			}
			traced = append(traced, text)
		}})
		require.NoError(t, err)
		mu.Lock()
		traced = nil
		mu.Unlock()
		_, err = db.Chats().Append(background, chat.AppendRequest{
			ChatID: id, BranchID: id + ".b", ExpectedHead: chat.Ref(fmt.Sprint(id, ".", messages-1)), Messages: []chat.Message{text("", id+".ours", "", "ours")},
		})
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		for n, text := range traced {
			if strings.HasPrefix(text, "UPDATE") && strings.Contains(strings.ToLower(text), "headmessageid") {
				return n, db
			}
		}
		return len(traced), db
	}

	n, db := appending("c")
	require.Less(t, n, 25, "statements before the branch is moved")
	s := db.Chats()
	requireCounts(t, s, "c", map[string]int{"main": messages + 1})
	depth, err := s.CountMessages(background, "c", "c.4321")
	require.NoError(t, err)
	require.Equal(t, 4322, depth)
	requireFound(t, s, "c", `"number 777" OR "number 5999" OR ours`, "c.777", "c.5999", "c.ours")
	shut := func(id string) {
		require.NoError(t, db.Close())
		mu.Lock()
		defer mu.Unlock()
		closed[id] = true
	}
	shut("c")

	_, db = appending("d")
	shut("d") // at once
	db = open(t, p)
	requireCounts(t, db.Chats(), "d", map[string]int{"main": messages + 1})
	_, err = db.Chats().Append(background, chat.AppendRequest{ChatID: "d", BranchID: "d.b", ExpectedHead: "d.ours", Messages: []chat.Message{text("", "d.more", "", "more")}})
	require.NoError(t, err)
	if c.Dialect.Search().Counted {
		_, another := appending("e")
		defer another.Close()
		require.Eventually(t, func() bool {
			known, all := 0, 0
			_, err := another.Reader().Get(background, `SELECT "known", "messages" FROM "lineage_chats" WHERE "chatId" = ?`, []any{"e"}, &known, &all)
			return err == nil && known == messages+1 && all == known
		}, time.Minute, 10*time.Millisecond, "it is indexed, though nobody searches")
		depth, err := another.Chats().CountMessages(background, "e", "e.ours")
		require.NoError(t, err)
		require.Equal(t, messages+1, depth)
	}
}
