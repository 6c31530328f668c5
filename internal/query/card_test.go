package query

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestCardGolden compares cards with golden bytes. Databases store cards: a change
// needs another kind of card.
func TestCardGolden(t *testing.T) {
	var b strings.Builder
	c := NewCataloguer()
	for _, m := range []struct {
		id, role, text string
		createdAt      int64
	}{
		{"m1", "user", "One card, and another card: ends of cards", 1_700_000_000_000},
		{"", "", "", -1},
		{"日本", "tool", strings.Repeat("Zürich 日 ", 100), 0},
	} {
		fmt.Fprintf(&b, "%q %s\n", m.id, hex.EncodeToString(c.Card(m.id, m.role, m.createdAt, c.Sort(m.text))))
	}
	path := filepath.Join("testdata", "card.golden")
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

// TestLargeCard leaves the entries out of a card exactly when it would be too large.
func TestLargeCard(t *testing.T) {
	for words, listed := range map[int]bool{maxCard - 100: true, maxCard + 100: false} {
		b := cardOf(strings.Repeat("x ", words))
		require.LessOrEqual(t, len(b), maxCard+200)
		c, ok := ReadCard(b)
		require.True(t, ok)
		require.Equal(t, listed, c.Listed)
		require.Equal(t, words, c.Words)
		require.Equal(t, listed, len(c.entries) > 0)
	}
}

// FuzzCard decodes any bytes as a card.
func FuzzCard(f *testing.F) {
	f.Add(cardOf("a card, and another card"))
	f.Add(cardOf(""))
	f.Add([]byte{cardBare, 0, 0, 0, 5})
	f.Add([]byte{cardListed, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 'c', 2, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := ReadCard(b)
		if !ok {
			return
		}
		q, ok := parse(`card OR a* OR "a card" OR ^and OR NEAR(a card)`)
		require.True(t, ok)
		m := NewMatcher(&q)
		if _, ok := m.MatchCard(&c); !ok {
			return
		}
		for i, places := range m.places {
			require.True(t, slices.IsSorted(places))
			for _, at := range places {
				require.GreaterOrEqual(t, at, int32(0))
				require.Less(t, int(at), c.Words)
			}
			require.LessOrEqual(t, len(places), len(b), i)
		}
	})
}

// TestCardsMatch compares the matches by cards and by words for random queries and
// texts of few words.
func TestCardsMatch(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "ab", "abc", "abcd", "b", "ba", "é", "日", "abc1", "running", "runs"})
		phrase := rapid.Custom(func(r *rapid.T) string {
			s := `"` + strings.Join(rapid.SliceOfN(word, 1, 3).Draw(r, "words"), " ") + `"`
			return rapid.SampledFrom([]string{"", "", "^"}).Draw(r, "at") + s + rapid.SampledFrom([]string{"", "", "*"}).Draw(r, "prefix")
		})
		query := phrase.Draw(r, "phrase")
		for range rapid.IntRange(0, 4).Draw(r, "parts") {
			switch rapid.IntRange(0, 4).Draw(r, "operator") {
			case 0:
				query = "(" + query + ") OR " + phrase.Draw(r, "phrase")
			case 1:
				query = "(" + query + ") NOT " + phrase.Draw(r, "phrase")
			case 2:
				query = "(" + query + ") NEAR(" + phrase.Draw(r, "phrase") + " " + phrase.Draw(r, "phrase") + ", 2)"
			default:
				query = "(" + query + ") " + phrase.Draw(r, "phrase")
			}
		}
		q, ok := parse(query)
		require.True(r, ok)
		m := NewMatcher(&q)
		for range 5 {
			text := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(r, "text"), " ")
			words := Words(text)
			want := m.MatchWords(words)
			found := hitsOf(m)
			checkHits(r, &q, words, found)
			c, ok := ReadCard(cardOf(text))
			require.True(r, ok)
			require.Len(r, words, c.Words)
			got, ok := m.MatchCard(&c)
			require.True(r, ok)
			require.Equal(r, want, got, "%s in %q", query, text)
			require.Equal(r, found, hitsOf(m), "%s in %q", query, text)
		}
	})
}

// checkHits compares the hits of a query that is one phrase with a search at every
// place.
func checkHits(t require.TestingT, q *Query, words []Word, found [][]Hit) {
	if q.op != opPhrase {
		return
	}
	want := []Hit{}
	for at := range words {
		got := at+len(q.terms) <= len(words) && (!q.initial || at == 0)
		for i := 0; got && i < len(q.terms); i++ {
			term := words[at+i].Term
			got = term == q.terms[i] || q.prefix && i == len(q.terms)-1 && strings.HasPrefix(term, q.terms[i])
		}
		if got {
			want = append(want, Hit{at, len(q.terms)})
		}
	}
	require.Equal(t, [][]Hit{want}, found)
}

// TestBest compares the best matches with those of a complete sort.
func TestBest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var s Matches
		for i := range rapid.IntRange(0, 60).Draw(r, "matches") {
			s.Add(fmt.Sprint("c", rapid.IntRange(0, 3).Draw(r, "chat")), fmt.Appendf(nil, "m%02d", i), int64(rapid.IntRange(0, 2).Draw(r, "time")),
				rapid.IntRange(1, 3).Draw(r, "words"), [][]Hit{nil, make([]Hit, rapid.IntRange(0, 2).Draw(r, "first")), {{}}})
		}
		s.Rank(map[string]int{"c0": 100, "c1": 100, "c2": 100, "c3": 7})
		sorted := s.Best(len(s.all))
		require.True(r, slices.IsSortedFunc(sorted, func(a, b Match) int { return s.compare(&a, &b) }))
		for _, m := range sorted {
			require.Positive(r, m.Rank)
		}
		limit := rapid.IntRange(0, 70).Draw(r, "limit")
		require.Equal(r, sorted[:min(limit, len(sorted))], s.Best(limit))
	})
}
