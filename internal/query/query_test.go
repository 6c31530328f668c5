package query

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	terms := func(text string) []string {
		var all []string
		for _, w := range Words(text) {
			require.NotEmpty(t, text[w.Start:w.End])
			all = append(all, w.Term)
		}
		return all
	}
	require.Equal(t, []string{"cafe", "cafe", "zurich", "it", "s", "x86", "64"}, terms("Café CAFE\u0301 (ZÜRICH) it's x86_64"))
	require.Equal(t, []string{"日", "本", "abc", "の"}, terms("日本abcの"))
	require.Empty(t, terms(" \t*-\"\u202e👩‍👩‍👧"))
	require.Len(t, terms(strings.Repeat("y", 10_000))[0], maxTerm)
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
		q, ok := parse(test.query)
		require.True(t, ok, test.query)
		require.Equal(t, test.want, NewMatcher(&q).MatchWords(Words(test.text)), "%q in %q", test.query, test.text)
	}
	for _, none := range []string{"", " ", "*", `"`, `""`, "()", "-", "👩‍👩‍👧", "^", "NEAR()"} {
		q, ok := parse(none)
		if none == "NEAR()" {
			require.True(t, ok, "must be a word")
			continue
		}
		require.False(t, ok, "%q: %+v", none, q)
	}
}

func TestSnippets(t *testing.T) {
	snippet := func(query, text string) string {
		q, ok := parse(query)
		require.True(t, ok)
		m, words := NewMatcher(&q), Words(text)
		require.True(t, m.MatchWords(words))
		return Snippet(text, words, m.Found)
	}
	require.Equal(t, "a <mark>Cat</mark>, and <mark>cats</mark>.", snippet("cat", "a Cat, and cats."))
	require.Equal(t, "the <mark>black cat</mark> sat", snippet(`"black cat"`, "the black cat sat"))
	long := strings.Repeat("filler ", 50) + "needle" + strings.Repeat(" filler", 50)
	require.Equal(t, "..."+strings.Repeat("filler ", 4)+"<mark>needle</mark>"+strings.Repeat(" filler", 27)+"...", snippet("needle", long))
}

// FuzzQuery searches any text for any query: nothing fails, matches fulfil the
// condition, and a snippet is part of the text.
func FuzzQuery(f *testing.F) {
	for _, seed := range [][2]string{
		{"cat NOT (dog OR NEAR(a b, 3))", "a cat, a b"}, {`"a ""b""" + c* ^d`, "a b c d"}, {"((((", "("}, {"a OR", "or"}, {"日本*", "日本語"}, {"", ""},
		{"x NOT x", "x"}, {"NEAR(x x x, 0)", "x x x"}, {"content:content", "content"}, {"\xff\x00", "\xff"}, {"a*b*c*", "abc"},
		{"0", "0" + strings.Repeat(" x", 40) + " 0"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		q, ok := parse(query)
		if !ok {
			return
		}
		m, words := NewMatcher(&q), Words(text)
		matches := m.MatchWords(words)
		found := hitsOf(m)
		if matches {
			require.True(t, fulfils(q.Condition(), words), "%q finds %q", query, text)
			snippet := Snippet(text, words, m.Found)
			if utf8.ValidString(text) && !strings.Contains(text, "<mark>") && !strings.Contains(text, "</mark>") {
				plain := strings.NewReplacer("<mark>", "", "</mark>", "").Replace(snippet)
				require.Contains(t, text, strings.TrimSuffix(strings.TrimPrefix(plain, "..."), "..."))
			}
		}
		card, ok := ReadCard(cardOf(text))
		require.True(t, ok)
		onCard, ok := m.MatchCard(&card)
		require.True(t, ok)
		require.Equal(t, matches, onCard, "%q in %q", query, text)
		require.Equal(t, found, hitsOf(m), "%q in %q", query, text)
	})
}

// hitsOf returns the hits of a matcher.
func hitsOf(m *Matcher) (found [][]Hit) {
	for _, hits := range m.Found {
		found = append(found, append([]Hit{}, hits...))
	}
	return found
}

// cardOf returns the card of a message with a text.
func cardOf(text string) []byte {
	c := NewCataloguer()
	return c.Card("m", "user", 1_700_000_000_000, c.Sort(text))
}

func fulfils(c Condition, words []Word) bool {
	if c.IsAny() {
		return true
	}
	if len(c.Parts) == 0 {
		for _, w := range words {
			if w.Term == c.Term || c.Prefix && strings.HasPrefix(w.Term, c.Term) {
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

// TestTermsOfAnyCharacter checks that no term contains a character with a
// meaning in conditions, whatever the word decomposes to.
func TestTermsOfAnyCharacter(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		for _, w := range Words(string(r)) {
			if strings.ContainsAny(w.Term, "\"'\\%_[]*:&|!()<> \t\n\x00") {
				t.Errorf("%U: %q", r, w.Term)
			}
		}
	}
}
