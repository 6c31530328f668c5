package sqltest

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

//go:embed testdata/oasst.jsonl
var corpus []byte

//go:embed testdata/search.golden
var searchGolden string

// Said is a message of the corpus.
type Said struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Text string `json:"text"`
}

// Corpus returns messages of people and models.
func Corpus(t testing.TB) []Said {
	var messages []Said
	for line := range bytes.Lines(corpus) {
		var m Said
		require.NoError(t, json.Unmarshal(line, &m))
		messages = append(messages, m)
	}
	return messages
}

// Fill adds the corpus to a chat.
func Fill(t testing.TB, s chat.Store, chatID string) {
	branch := grow(t, s, chatID, 0)
	var messages []chat.Message
	for _, m := range Corpus(t) {
		added := text(chatID, m.ID, "", m.Text)
		added.Name = m.Role
		messages = append(messages, added)
	}
	_, err := s.Append(background, chat.AppendRequest{ChatID: chatID, BranchID: branch.ID, Messages: messages})
	require.NoError(t, err)
}

var plainWord = regexp.MustCompile(`\pL[\pL\pM]*`)

// PlainQueries returns queries with words of the corpus: single ones and adjacent pairs.
func PlainQueries(t testing.TB) []string {
	seen := map[string]bool{}
	var queries []string
	for i, m := range Corpus(t) {
		words := plainWord.FindAllString(m.Text, -1)
		for j, w := range words {
			if key := strings.ToLower(w); !seen[key] && (i+j)%4 == 0 {
				seen[key] = true
				queries = append(queries, key)
			}
			if j > 0 && (i+j)%60 == 0 {
				queries = append(queries, words[j-1]+" "+w)
			}
		}
	}
	return queries
}

// fullQueries use the whole query language, valid and invalid.
var fullQueries = []string{
	"plan OR step", "plan NOT step", "financial AND advisor", `"financial advisor"`, `"advisor financial"`, "invest*", `"first st" *`,
	`"first st"*`, "NEAR(plan needs, 3)", "NEAR(plan needs, 30)", "NEAR(first financial)", "(plan OR budget) AND (fee OR cost)",
	"plan OR step NOT research", "a b c", "one + two", "the + first", "^how", "^the", "what's", "hyphen-ated", "c++", "C++ in 3.14", "Paris.",
	"running", "runs", "relation", "hope", "zurich", "Zürich", "ČEŠTINA", "cestina", "москва", "日本語", "テキスト", "x86_64", "3.14", "and or not",
	"AND", "OR plan", "plan AND", "(plan", "plan)", "NEAR(", `"plan`, "plan*step", "content: plan", "name: user", "-plan", "plan -step", "*", "",
	"user", "assistant", "text", "parts", "role", "how to: do it?", "What is the best plan?", "don't", "e-mail", "(a) first, (b) second",
}

// testSearch searches the corpus with many queries. All databases must find the results in the
// golden file.
func testSearch(t *testing.T, c Config) {
	s := sqlchat.On(open(t, c.New(t)))
	Fill(t, s, "other")
	_, err := s.DeleteChat(background, "other", chat.DeleteOptions{})
	require.NoError(t, err)
	Fill(t, s, "c")
	require.Equal(t, searchGolden, SearchAll(t, s, "c"))
}

// SearchAll runs all queries on a filled chat and returns the results.
func SearchAll(t testing.TB, s chat.Store, chatID string) string {
	var b strings.Builder
	for _, query := range slices.Concat(fullQueries, PlainQueries(t)) {
		ids := idsFound(t, s, chatID, query)
		slices.Sort(ids)
		fmt.Fprintf(&b, "%q %s\n", query, strings.Join(ids, " "))
	}
	return b.String()
}

// testSearchReopened also compares ranks and snippets.
func testSearchReopened(t *testing.T, c Config) {
	p := c.New(t)
	db, err := p.Open(background)
	require.NoError(t, err)
	Fill(t, sqlchat.On(db), "c")
	search := func(s chat.Store) []chat.SearchResult {
		results, err := s.SearchMessages(background, "c", "financial plan OR research", chat.SearchOptions{Roles: []string{"assistant"}, Limit: 5})
		require.NoError(t, err)
		require.Len(t, results, 5)
		return results
	}
	before := search(sqlchat.On(db))
	require.NoError(t, db.Close())
	after := search(sqlchat.On(open(t, p)))
	require.Equal(t, before, after)
	for i, r := range after {
		require.Equal(t, "assistant", r.Message.Name)
		require.Contains(t, r.Snippet, "<mark>")
		if i > 0 {
			require.GreaterOrEqual(t, after[i-1].Rank, r.Rank)
		}
	}
}

// testSearchAllChats compares a search in all chats with searches in each.
//
// feature: storage/search-users
func testSearchAllChats(t *testing.T, c Config) {
	p := c.New(t)
	db := open(t, p)
	s := sqlchat.On(db)
	said := Corpus(t)
	for i := range 6 {
		id, user := fmt.Sprint("c", i), []string{"ada", "bob"}[i%2]
		created, err := s.CreateChat(background, chat.Chat{ID: id, UserID: user})
		require.NoError(t, err)
		b, err := s.ActiveBranch(background, created.ID)
		require.NoError(t, err)
		var messages []chat.Message
		for j, m := range said[i*len(said)/8 : (i+1)*len(said)/8] {
			added := text(id, fmt.Sprint(id, ".", j), "", m.Text)
			added.Name = m.Role
			messages = append(messages, added)
		}
		_, err = s.Append(background, chat.AppendRequest{ChatID: id, BranchID: b.ID, Messages: messages})
		require.NoError(t, err)
	}
	// Messages added by another program are found too.
	require.NoError(t, p.Exec(background, `INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") `+
		`VALUES ('theirs', 'c3', NULL, 'user', 'message', '{"parts":[{"type":"text","text":"the plan of a zebra"}]}', 5000)`))
	many := strings.Repeat("absent OR ", 60) + "the OR plan"
	for _, query := range []string{"the", "plan", "zebra", `"of the"`, "inv*", "NEAR(the a, 3)", "plan NOT the", many, "absent", ""} {
		for _, o := range []chat.SearchOptions{{}, {Limit: 3}, {Limit: 1000}, {Roles: []string{"assistant"}, Limit: 30}} {
			for _, user := range []string{"", "ada", "bob", "nobody"} {
				var want []chat.SearchResult
				for info, err := range s.ListChats(background, chat.ListOptions{}) {
					require.NoError(t, err)
					if user == "" || info.UserID == user {
						found, err := s.SearchMessages(background, info.ID, query, chat.SearchOptions{Roles: o.Roles, Limit: 1000})
						require.NoError(t, err)
						want = append(want, found...)
					}
				}
				slices.SortFunc(want, func(a, b chat.SearchResult) int {
					return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(b.Message.CreatedAt, a.Message.CreatedAt), cmp.Compare(a.Message.ID, b.Message.ID))
				})
				want = want[:min(len(want), cmp.Or(o.Limit, chat.DefaultSearchLimit))]
				found, err := sqlchat.SearchAll(background, db, user, query, o)
				require.NoError(t, err)
				require.Equal(t, want, found, "%q of %q with %+v", query, user, o)
			}
		}
	}
	_, err := sqlchat.SearchAll(background, db, "", "the", chat.SearchOptions{Limit: -1})
	require.ErrorIs(t, err, chat.ErrInvalid)
}

// testSearchChanged searches for messages that other programs change and delete.
func testSearchChanged(t *testing.T, c Config) {
	p := c.New(t)
	db := open(t, p)
	s := sqlchat.On(db)
	grow(t, s, "c", 30)
	rank := func() float64 {
		found, err := s.SearchMessages(background, "c", `"number 3"`, chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, found, 1)
		all, err := sqlchat.SearchAll(background, db, "", `"number 3"`, chat.SearchOptions{})
		require.NoError(t, err)
		require.Equal(t, found, all)
		return found[0].Rank
	}
	before := rank()
	require.NoError(t, p.Exec(background, `UPDATE messages SET name = 'tool' WHERE id = 'c.3'`))
	found, err := s.SearchMessages(background, "c", `"number 3"`, chat.SearchOptions{Roles: []string{"tool"}})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.InDelta(t, before, rank(), 0)
	require.NoError(t, p.Exec(background, `UPDATE branches SET "headMessageId" = 'c.9'; `+
		`DELETE FROM messages WHERE id IN ('c.29', 'c.28', 'c.27')`))
	require.Less(t, rank(), before, "it is rarer among more")
	requireFound(t, s, "c", `"number 28"`)
	require.NoError(t, p.Exec(background, `INSERT INTO messages (id, "chatId", "parentId", name, type, data, "createdAt") `+
		`VALUES ('c.28', 'c', 'c.26', 'user', 'message', '"number 3"', 5000)`))
	requireFound(t, s, "c", `"number 3"`, "c.3", "c.28")
	requireFound(t, s, "c", `"number 28"`)
}

// testSearchLong finds words in a message with more words than are indexed individually.
func testSearchLong(t *testing.T, c Config) {
	db := open(t, c.New(t))
	s := sqlchat.On(db)
	branch := grow(t, s, "c", 3)
	var says strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&says, "%05dx%s ", i, strings.Repeat("y", 120))
	}
	_, err := s.Append(background, chat.AppendRequest{
		ChatID: "c", BranchID: branch.ID, ExpectedHead: branch.HeadMessageID,
		Messages: []chat.Message{text("c", "long", "", "message of "+says.String()+"many words")},
	})
	require.NoError(t, err)
	requireFound(t, s, "c", "words", "long")
	requireFound(t, s, "c", `"many words"`, "long")
	requireFound(t, s, "c", `"words many"`)
	requireFound(t, s, "c", "00004*", "long")
	requireFound(t, s, "c", "message", "long", "c.0", "c.1", "c.2")
	found, err := sqlchat.SearchAll(background, db, "", "messag* NOT says", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Snippet, "<mark>message</mark> of 0000")
}

// foreignChats returns a script that creates chats of a user as another program does, each with
// some messages, the last of which is a separate root.
func foreignChats(user string, chats, messages int) string {
	var b strings.Builder
	for i := range chats {
		id := fmt.Sprintf("%s.%d", user, i)
		fmt.Fprintf(&b, `INSERT INTO chats (id, "userId", "createdAt", "updatedAt") VALUES ('%s', '%s', 1, 1);`+"\n", id, user)
		for j := range messages {
			parent := "NULL"
			if j > 0 && j < messages-1 {
				parent = fmt.Sprintf("'%s.%d'", id, j-1)
			}
			fmt.Fprintf(&b, `INSERT INTO messages (id, "chatId", "parentId", name, data, "createdAt") VALUES ('%s.%d', '%s', %s, 'user', '"a zebra"', 1);`+"\n", id, j, id, parent)
		}
	}
	return b.String()
}

// testSearchAllOfUser searches the chats of one user among those of another, all written by another
// program. Only the user's are indexed, and nothing continues after the search is cancelled.
func testSearchAllOfUser(t *testing.T, c Config) {
	const chats, messages = 30, 4
	p := c.New(t)
	var statements atomic.Int64
	var each atomic.Pointer[func()]
	db, err := c.OpenWith(background, p, sqladapter.Options{Trace: func(string) {
		statements.Add(1)
		if do := each.Load(); do != nil {
			(*do)()
		}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	known := func(user string) int {
		n := -1
		_, err := db.Reader().Get(background, `SELECT COUNT(*) AS "count" FROM "lineage_messages" WHERE "chatId" LIKE ?`, []any{user + ".%"}, &n)
		require.NoError(t, err)
		return n
	}
	require.NoError(t, p.Exec(background, foreignChats("ada", chats, messages)+foreignChats("bob", chats, messages)+foreignChats("eve", chats, messages)))

	statements.Store(0)
	found, err := sqlchat.SearchAll(background, db, "ada", "zebra", chat.SearchOptions{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, found, chats*messages)
	total := statements.Load()
	require.Less(t, total, int64(chats), "chats are indexed together")
	require.Equal(t, chats*messages, known("ada"))
	require.Zero(t, known("bob"))
	require.Zero(t, known("eve"))
	statements.Store(0)
	_, err = sqlchat.SearchAll(background, db, "ada", "zebra", chat.SearchOptions{Limit: 1})
	require.NoError(t, err)
	require.Less(t, statements.Load(), int64(10), "nothing is left to be indexed")

	for cancelled := int64(1); cancelled < total; cancelled += 3 {
		ctx, cancel := context.WithCancel(background)
		statements.Store(0)
		do := func() {
			if statements.Load() == cancelled {
				cancel()
			}
		}
		each.Store(&do)
		_, err = sqlchat.SearchAll(ctx, db, "bob", "zebra", chat.SearchOptions{Limit: 1000})
		each.Store(nil)
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, len(err.Error()), 300)
		require.LessOrEqual(t, statements.Load(), cancelled+1, "it stops")
	}
	found, err = sqlchat.SearchAll(background, db, "", "zebra", chat.SearchOptions{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, found, 3*chats*messages)
	require.Equal(t, chats*messages, known("eve"))

	// The cost does not depend on the number of chats.
	require.NoError(t, p.Exec(background, foreignChats("zoe", 20*chats, 1)))
	statements.Store(0)
	found, err = sqlchat.SearchAll(background, db, "zoe", "zebra", chat.SearchOptions{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, found, 20*chats)
	require.Less(t, statements.Load(), 5*total)

	// A chat with contradictory rows does not prevent indexing of others.
	require.NoError(t, p.Exec(background, foreignChats("kim", chats, messages)+`UPDATE messages SET "parentId" = 'kim.7.1' WHERE id = 'kim.7.0'`))
	found, err = sqlchat.SearchAll(background, db, "kim", "zebra", chat.SearchOptions{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, found, chats*messages)
	require.GreaterOrEqual(t, known("kim"), (chats-1)*messages)
}
