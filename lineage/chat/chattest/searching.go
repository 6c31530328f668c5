package chattest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

func testSearch(t *testing.T, s *store) {
	s.createChat("c")
	if !s.config.Search {
		_, err := s.SearchMessages(background, "c", "word", chat.SearchOptions{})
		require.ErrorIs(t, err, chat.ErrSearchUnavailable)
		t.Skip("not tested: the store says that it cannot search")
	}
	s.createChat("other")
	for _, m := range []chat.Message{
		text("c", "q", "", "user", "How do I parse Python files? It's hyphen-ated."),
		text("c", "a", "q", "assistant", "Parsing Python is done with the ast module in Paris."),
		text("other", "theirs", "", "user", "Python elsewhere"),
		{ID: "tool", ChatID: "c", ParentID: "a", Name: "assistant", CreatedAt: 1, Data: json.RawMessage(
			`{"role":"assistant","parts":[{"type":"tool-run","input":{"command":"grep zebra"},"output":"quagga found"}]}`)},
	} {
		require.NoError(t, s.AddMessage(background, m))
	}
	search := func(query string, o chat.SearchOptions) []string {
		t.Helper()
		results, err := s.SearchMessages(background, "c", query, o)
		require.NoError(t, err, "%q", query)
		var ids []string
		for i, r := range results {
			if i > 0 {
				require.LessOrEqual(t, results[i-1].Rank, r.Rank)
			}
			ids = append(ids, r.Message.ID)
		}
		return ids
	}
	for _, test := range []struct {
		query string
		o     chat.SearchOptions
		want  []string
	}{
		{"python", chat.SearchOptions{}, []string{"q", "a"}},
		{"python", chat.SearchOptions{Roles: []string{"user"}}, []string{"q"}},
		{"python files", chat.SearchOptions{}, []string{"q"}},
		{"zebra", chat.SearchOptions{}, []string{"tool"}},
		{"quagga", chat.SearchOptions{}, []string{"tool"}},
		{"elsewhere", chat.SearchOptions{}, nil},
		{"parts", chat.SearchOptions{}, nil},
		{"hyphen-ated", chat.SearchOptions{}, []string{"q"}},
		{"it's", chat.SearchOptions{}, []string{"q"}},
		{"Paris.", chat.SearchOptions{}, []string{"a"}},
	} {
		require.ElementsMatch(t, test.want, search(test.query, test.o), "%q", test.query)
	}
	for _, odd := range []string{"", "*", `"`, "c++", "(", "AND", "a OR", "NEAR("} {
		search(odd, chat.SearchOptions{})
	}
	results, err := s.SearchMessages(background, "c", "ast", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Contains(t, results[0].Snippet, "<mark>ast</mark>")

	for i := range chat.DefaultSearchLimit + 5 {
		require.NoError(t, s.AddMessage(background, text("c", fmt.Sprint("m", i), "q", "user", "walrus")))
	}
	require.Len(t, search("walrus", chat.SearchOptions{}), chat.DefaultSearchLimit)
	require.Len(t, search("walrus", chat.SearchOptions{Limit: 3}), 3)
	require.Len(t, search("walrus", chat.SearchOptions{Limit: 100}), chat.DefaultSearchLimit+5)
}
