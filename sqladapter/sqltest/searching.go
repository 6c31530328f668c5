package sqltest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

//go:embed testdata/oasst.jsonl
var corpus []byte

//go:embed testdata/search.golden
var searchGolden string

// A Said is a message of the corpus.
type Said struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Text string `json:"text"`
}

// Corpus returns messages that people and models exchanged.
func Corpus(t testing.TB) []Said {
	var messages []Said
	for line := range bytes.Lines(corpus) {
		var m Said
		require.NoError(t, json.Unmarshal(line, &m))
		messages = append(messages, m)
	}
	return messages
}

// Fill puts the corpus into a chat.
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

// PlainQueries returns queries of words of the corpus: one by one, and by twos that
// stand together.
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

// fullQueries are of the whole language, valid and not.
var fullQueries = []string{
	"plan OR step", "plan NOT step", "financial AND advisor", `"financial advisor"`, `"advisor financial"`, "invest*", `"first st" *`,
	`"first st"*`, "NEAR(plan needs, 3)", "NEAR(plan needs, 30)", "NEAR(first financial)", "(plan OR budget) AND (fee OR cost)",
	"plan OR step NOT research", "a b c", "one + two", "the + first", "^how", "^the", "what's", "hyphen-ated", "c++", "C++ in 3.14", "Paris.",
	"running", "runs", "relation", "hope", "zurich", "Zürich", "ČEŠTINA", "cestina", "москва", "日本語", "テキスト", "x86_64", "3.14", "and or not",
	"AND", "OR plan", "plan AND", "(plan", "plan)", "NEAR(", `"plan`, "plan*step", "content: plan", "name: user", "-plan", "plan -step", "*", "",
	"user", "assistant", "text", "parts", "role", "how to: do it?", "What is the best plan?", "don't", "e-mail", "(a) first, (b) second",
}

// testSearch searches the corpus with many queries. All databases must find what
// the golden file says.
func testSearch(t *testing.T, c Config) {
	s := open(t, c.New(t)).Chats()
	Fill(t, s, "other")
	_, err := s.DeleteChat(background, "other", chat.DeleteOptions{})
	require.NoError(t, err)
	Fill(t, s, "c")
	require.Equal(t, searchGolden, SearchAll(t, s, "c"))
}

// SearchAll searches a chat that was filled and returns what was found.
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
	Fill(t, db.Chats(), "c")
	search := func(s chat.Store) []chat.SearchResult {
		results, err := s.SearchMessages(background, "c", "financial plan OR research", chat.SearchOptions{Roles: []string{"assistant"}, Limit: 5})
		require.NoError(t, err)
		require.Len(t, results, 5)
		return results
	}
	before := search(db.Chats())
	require.NoError(t, db.Close())
	after := search(open(t, p).Chats())
	require.Equal(t, before, after)
	for i, r := range after {
		require.Equal(t, "assistant", r.Message.Name)
		require.Contains(t, r.Snippet, "<mark>")
		if i > 0 {
			require.GreaterOrEqual(t, after[i-1].Rank, r.Rank)
		}
	}
}
