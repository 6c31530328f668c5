package sqladapter

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// feature: storage/search-data
func TestSearchText(t *testing.T) {
	for data, want := range map[string]string{
		`"plain"`: "plain",
		`null`:    "", `12`: "12", `true`: "", `[]`: "", `{}`: "",
		`{"id":"q1","role":"user","parts":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`:                                                   "one\ntwo",
		`{"role":"assistant","parts":[{"type":"tool-run","toolCallId":"t1","input":{"command":"grep","n":[1,"x"]},"output":"found","state":"done"}]}`:     "grep\n1\nx\nfound",
		`{"role":"assistant","parts":[{"type":"reasoning","text":"because"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"}]}`: "because",
		`{"role":"user","content":"words"}`: "words",
		`{"parts":[{"type":"source-url","sourceId":"s","url":"https://x","title":"A page"},{"type":"file","mediaType":"a/b","filename":"plan.pdf","url":"u"},{"type":"text","text":"t"}]}`: "A page\nplan.pdf\nt",
		`{"parts":[{"data":{"city":"Lisbon","n":[1,null]},"type":"data-weather","id":"w"},{"type":"text","text":"t"},{"type":"data-flag","data":"on"}]}`:                                   "Lisbon\n1\nt\non",
		`{"content":[{"type":"image","source":{"type":"base64","data":"AAAA"}},{"type":"input_audio","data":"BBBB"},{"type":7,"data":"CCCC"}]}`:                                            "",
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"tool_result","content":"b"}]}`:                                                                                      "a\nb",
		`{"other":"all","of":["it",{"is":"taken"}]}`: "all\nit\ntaken",
		`{"text":"line\none"}`:                       "line\none",
		// Messages of archives.
		`{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]},"metadata":{"x":"no"}}`:                          "hi",
		`{"author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[{"summary":"s","content":"hm"}]}}`:                   "s\nhm",
		`{"uuid":"m","content":[{"type":"text","text":"hi","citations":[]}],"text":"hi","sender":"human","attachments":[{"file_name":"no"}]}`: "hi",
		`{"uuid":"m","text":"hi","content":[],"sender":"human"}`:                                                                              "hi",
		`{"messageId":"m","text":"","content":[{"type":"think","think":"hm"},{"type":"text","text":{"value":"hi"}}],"sender":"no"}`:           "hm\nhi",
		`{"message_id":"m","text":"hi","role":"prompter","lang":"en","labels":{"name":["no"],"value":[1]}}`:                                   "hi",
		`{"from":"human","value":"hi"}`: "hi",
		`{"value":"all","of":"it"}`:     "all\nit",
		`{"role":"assistant","content":[{"type":"text","text":"hi"}],"thought":"no"}`: "hi",
	} {
		require.True(t, json.Valid([]byte(data)), data)
		require.Equal(t, want, searchText(json.RawMessage(data)), data)
	}
	for _, malformed := range []string{"", "[a0", `["said", b`, `{"text":"said"`, `{"a" "said"}`, `"said" [`, "said", "[1 2]", strings.Repeat("[", 20_000), strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)} {
		require.Empty(t, searchText(json.RawMessage(malformed)))
	}
}

func TestWords(t *testing.T) {
	terms := func(text string) []string {
		var all []string
		for _, w := range wordsOf(text) {
			require.NotEmpty(t, text[w.start:w.end])
			all = append(all, w.term)
		}
		return all
	}
	require.Equal(t, []string{"cafe", "cafe", "zurich", "it", "s", "x86", "64"}, terms("Café CAFE\u0301 (ZÜRICH) it's x86_64"))
	require.Equal(t, []string{"日", "本", "abc", "の"}, terms("日本abcの"))
	require.Empty(t, terms(" \t*-\"\u202e👩‍👩‍👧"))
	require.Len(t, terms(strings.Repeat("y", 10_000))[0], longestTerm)
}

func TestQueries(t *testing.T) {
	for _, test := range []struct {
		query string
		text  string
		want  bool
	}{
		{"cats", "a cat", true}, {"cat dog", "dog, cat", true}, {"cat dog", "cat", false}, {"cat OR dog", "dogs", true}, {"cat NOT dog", "cat", true},
		{"cat NOT dog", "cat dog", false}, {`"black cat"`, "the black cats", true}, {`"black cat"`, "cat black", false}, {"bla*", "black", true},
		{"bla", "black", false}, {"^black", "black cat", true}, {"^cat", "black cat", false}, {"black + cat", "black cat", true},
		{"NEAR(black cat)", "black a b c cat", true}, {"NEAR(black cat, 2)", "black a b c cat", false}, {"NEAR(cat black, 3)", "black a b c cat", true},
		{"a OR b AND c", "a", true}, {"(a OR b) AND c", "a", false}, {"a b OR c", "c", true}, {"a NOT b c", "a b", true}, {"a NOT b c", "a b c", false},
		{"content: cat", "cat", true}, {"what's up", "what's up", true}, {"c++", "in c", true}, {"cat AND", "cat", true}, {`"cat`, "cat", true},
		{"OR", "this or that", true}, {"note: cat", "cat", false}, {"note: cat", "a note on a cat", true}, {`say ""`, "say", true}, {`"a ""b"""`, "a b", true},
		{"cat*dog", "cat dog", true}, {"hyphen-ated", "hyphen ated", true}, {"hyphen-ated", "ated hyphen", false}, {"near(cat)", "near cat", true},
		{`"black c"*`, "black cat", true}, {"not cat", "not a cat", true},
	} {
		q, ok := parseQuery(test.query)
		require.True(t, ok, test.query)
		require.Equal(t, test.want, newMatcher(&q).matchWords(wordsOf(test.text)), "%q in %q", test.query, test.text)
	}
	for _, none := range []string{"", " ", "*", `"`, `""`, "()", "-", "👩‍👩‍👧", "^", "NEAR()"} {
		q, ok := parseQuery(none)
		if none == "NEAR()" {
			require.True(t, ok, "it is a word then")
			continue
		}
		require.False(t, ok, "%q: %+v", none, q)
	}
}

func TestSnippets(t *testing.T) {
	snippet := func(query, text string) string {
		q, ok := parseQuery(query)
		require.True(t, ok)
		m, words := newMatcher(&q), wordsOf(text)
		require.True(t, m.matchWords(words))
		return snippetOf(text, words, m.found)
	}
	require.Equal(t, "a <mark>Cat</mark>, and <mark>cats</mark>.", snippet("cat", "a Cat, and cats."))
	require.Equal(t, "the <mark>black cat</mark> sat", snippet(`"black cat"`, "the black cat sat"))
	long := strings.Repeat("filler ", 50) + "needle" + strings.Repeat(" filler", 50)
	require.Equal(t, "..."+strings.Repeat("filler ", 4)+"<mark>needle</mark>"+strings.Repeat(" filler", 27)+"...", snippet("needle", long))
}

// FuzzQuery has any text searched in any text: nothing fails, the condition lets
// through what matches, and a snippet is of the text.
func FuzzQuery(f *testing.F) {
	for _, seed := range [][2]string{
		{"cat NOT (dog OR NEAR(a b, 3))", "a cat, a b"}, {`"a ""b""" + c* ^d`, "a b c d"}, {"((((", "("}, {"a OR", "or"}, {"日本*", "日本語"}, {"", ""},
		{"x NOT x", "x"}, {"NEAR(x x x, 0)", "x x x"}, {"content:content", "content"}, {"\xff\x00", "\xff"}, {"a*b*c*", "abc"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		q, ok := parseQuery(query)
		if !ok {
			return
		}
		m, words := newMatcher(&q), wordsOf(text)
		matches := m.matchWords(words)
		found := hitsOf(m)
		if matches {
			require.True(t, fulfils(q.condition(), words), "%q finds %q", query, text)
			snippet := snippetOf(text, words, m.found)
			if utf8.ValidString(text) && !strings.Contains(text, "<mark>") && !strings.Contains(text, "</mark>") {
				plain := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(snippet)
				require.Contains(t, "..."+text+"...", plain)
			}
		}
		card, ok := readCard(cardOf(text))
		require.True(t, ok)
		onCard, ok := m.matchCard(&card)
		require.True(t, ok)
		require.Equal(t, matches, onCard, "%q in %q", query, text)
		require.Equal(t, found, hitsOf(m), "%q in %q", query, text)
		searchText(json.RawMessage(text))
		searchText(json.RawMessage(query))
	})
}

// hitsOf returns what a matcher found.
func hitsOf(m *matcher) (found [][]hit) {
	for _, hits := range m.found {
		found = append(found, append([]hit{}, hits...))
	}
	return found
}

// cardOf returns the card of a message with a text.
func cardOf(text string) []byte {
	c := newCataloguer()
	words := c.sort(text)
	return c.cardOf(&chat.Message{ID: "m", Name: "user", CreatedAt: 1_700_000_000_000}, words)
}

func fulfils(c Condition, words []word) bool {
	if c.IsAny() {
		return true
	}
	if len(c.Parts) == 0 {
		for _, w := range words {
			if w.term == c.Term || c.Prefix && strings.HasPrefix(w.term, c.Term) {
				return true
			}
		}
		return false
	}
	for _, part := range c.Parts {
		if fulfils(part, words) == c.Or {
			return c.Or
		}
	}
	return !c.Or
}

// TestTermsOfAnyCharacter checks that nothing in a term means something in a
// condition, whatever its character decomposes to.
func TestTermsOfAnyCharacter(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		for _, w := range wordsOf(string(r)) {
			if strings.ContainsAny(w.term, "\"'\\%_[]*:&|!()<> \t\n\x00") {
				t.Errorf("%U: %q", r, w.term)
			}
		}
	}
}
