package chattest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// feature: storage/search
// feature: storage/search-syntax
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
				require.GreaterOrEqual(t, results[i-1].Rank, r.Rank, "the higher, the better")
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
		{"PARSED", chat.SearchOptions{}, []string{"q", "a"}},
		{"done AND paris", chat.SearchOptions{}, []string{"a"}},
		{"zebra OR files", chat.SearchOptions{}, []string{"q", "tool"}},
		{"python NOT paris", chat.SearchOptions{}, []string{"q"}},
		{`"python files"`, chat.SearchOptions{}, []string{"q"}},
		{`"files python"`, chat.SearchOptions{}, nil},
		{"pyth*", chat.SearchOptions{}, []string{"q", "a"}},
		{"pyth", chat.SearchOptions{}, nil},
		{"NEAR(parse files, 1)", chat.SearchOptions{}, []string{"q"}},
		{"NEAR(parse files, 0)", chat.SearchOptions{}, nil},
		{"(zebra OR python) AND (quagga OR ast)", chat.SearchOptions{}, []string{"a", "tool"}},
		{"zebra python", chat.SearchOptions{Roles: []string{"user", "assistant"}}, nil},
		{"command", chat.SearchOptions{}, nil},
		{"text", chat.SearchOptions{}, nil},
		{"python?", chat.SearchOptions{}, []string{"q", "a"}},
		{"what about 'zebra'; DROP TABLE", chat.SearchOptions{}, nil},
	} {
		require.ElementsMatch(t, test.want, search(test.query, test.o), "%q", test.query)
	}
	for _, odd := range []string{
		"", " ", "*", `"`, "c++", "(", ")", "AND", "a OR", "NEAR(", "NEAR(a b", "^", "-", "'", "''", "%", "_", "a:b", "content:", "\x00", "\xff",
		"'; --", "$1", "?", "@p1", "&", "|", "!", "a & b", "<->", `\`, "a*b*", strings.Repeat("(", 5000), strings.Repeat("a ", 5000), "\u202e", "👩‍👩‍👧",
	} {
		search(odd, chat.SearchOptions{})
	}
	for joined, refused := range map[string]bool{
		strings.Repeat("w OR ", 255) + "python":                 false,
		strings.Repeat("w OR ", 2900) + "python":                true,
		"python" + strings.Repeat(" NOT w", 255):                false,
		"python" + strings.Repeat(" NOT w", 256):                true,
		strings.Repeat("(a OR b) ", 128):                        false,
		"python AND (" + strings.Repeat("(a OR b) ", 129) + ")": true,
		"NEAR(" + strings.Repeat("w ", 2000) + ")":              false,
	} {
		_, err := s.SearchMessages(background, "c", joined, chat.SearchOptions{})
		if refused {
			require.ErrorIs(t, err, chat.ErrInvalid, "%.40s", joined)
		} else {
			require.NoError(t, err, "%.40s", joined)
		}
	}
	none, err := s.SearchMessages(background, "nobody", "python", chat.SearchOptions{})
	require.NoError(t, err)
	require.Empty(t, none)
	results, err := s.SearchMessages(background, "c", "ast", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Contains(t, results[0].Snippet, "<mark>ast</mark>")

	// A snippet has data of a message only if nothing else matches.
	require.NoError(t, s.AddMessage(background, chat.Message{
		ID: "data", ChatID: "c", ParentID: "q", Name: "user", Type: chat.TypeMessage,
		Data: json.RawMessage(`{"metadata":{"of":"kingfisher in German"},"parts":[{"type":"text","text":"a kingfisher over the pond"}]}`),
	}))
	for query, snippet := range map[string]string{"kingfisher": "a <mark>kingfisher</mark> over the pond", "german": "<mark>German</mark>", "pond german": "<mark>German</mark>"} {
		results, err = s.SearchMessages(background, "c", query, chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, results, 1, query)
		require.Contains(t, results[0].Snippet, snippet)
		require.Equal(t, query != "kingfisher", strings.Contains(results[0].Snippet, "German"), results[0].Snippet)
	}

	// What a program added to a message of a person is in a snippet only if what the person wrote does not match.
	require.NoError(t, s.AddMessage(background, text("c", "added", "q", "user", "<system-reminder>\nThe osprey <b>is</b> blue.\n</system-reminder>\nWhich osprey?")))
	for query, snippet := range map[string]string{
		"osprey": "Which <mark>osprey</mark>?", "blue": "(system-reminder) The osprey <b>is</b> <mark>blue</mark>.",
		"which blue": "(system-reminder) The osprey <b>is</b> <mark>blue</mark>.\n<mark>Which</mark> osprey?",
	} {
		results, err = s.SearchMessages(background, "c", query, chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, results, 1, query)
		require.Equal(t, snippet, results[0].Snippet)
	}

	// Data that only its format explains is in a snippet as it is shown.
	require.NoError(t, s.AddMessage(background, chat.Message{
		ID: "shell", ChatID: "c", ParentID: "q", Name: "shell", Type: chat.TypeMessage,
		Data: json.RawMessage(`{"type":"shell","id":"evt_1","callID":"c1","time":{"created":1754000000000},"command":"count turacos","output":"three turacos"}`),
	}))
	results, err = s.SearchMessages(background, "c", "three", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Equal(t, "count turacos\n<mark>three</mark> turacos", results[0].Snippet)

	for i := range chat.DefaultSearchLimit + 5 {
		require.NoError(t, s.AddMessage(background, text("c", fmt.Sprint("m", i), "q", "user", "walrus")))
	}
	require.Len(t, search("walrus", chat.SearchOptions{}), chat.DefaultSearchLimit)
	require.Len(t, search("walrus", chat.SearchOptions{Limit: 3}), 3)
	require.Len(t, search("walrus", chat.SearchOptions{Limit: 100}), chat.DefaultSearchLimit+5)

	testSearchRanks(t, s)
}

// testSearchRanks checks that other chats have no influence on ranks.
func testSearchRanks(t *testing.T, s *store) {
	s.createChat("ranked")
	for id, words := range map[string]string{
		"once":  "a heron among many other birds that stand in the water of the lake",
		"often": "heron heron heron",
		"never": "nothing of that kind",
	} {
		require.NoError(t, s.AddMessage(background, text("ranked", id, "", "user", words)))
	}
	before, err := s.SearchMessages(background, "ranked", "heron", chat.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, before, 2)
	require.Equal(t, "often", before[0].Message.ID)
	require.Greater(t, before[0].Rank, before[1].Rank)
	for i := range 10 {
		require.NoError(t, s.AddMessage(background, text("other", fmt.Sprint("elsewhere", i), "", "user", "heron")))
	}
	after, err := s.SearchMessages(background, "ranked", "heron", chat.SearchOptions{})
	require.NoError(t, err)
	require.Equal(t, before, after)

	// What was deleted is not found, even when its id is used again.
	_, err = s.DeleteChat(background, "ranked", chat.DeleteOptions{})
	require.NoError(t, err)
	s.createChat("ranked")
	require.NoError(t, s.AddMessage(background, text("ranked", "often", "", "user", "an egret")))
	for query, want := range map[string]int{"heron": 0, "egret": 1} {
		found, err := s.SearchMessages(background, "ranked", query, chat.SearchOptions{})
		require.NoError(t, err)
		require.Len(t, found, want, query)
	}
}
