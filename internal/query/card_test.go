package query

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
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

// TestBest compares the best matches with those of a complete sort, and their ranks with ranks that are computed from all
// matches of a chat at once. Matches are dropped and added again, in memory and in a file.
func TestBest(t *testing.T) {
	formerMemory, formerBuffer := mostInMemory, mostBuffered
	defer func() { mostInMemory, mostBuffered = formerMemory, formerBuffer }()
	rapid.Check(t, func(r *rapid.T) {
		mostInMemory, mostBuffered = rapid.SampledFrom([]int{1, 100, formerMemory}).Draw(r, "in memory"), rapid.SampledFrom([]int{1, 50, formerBuffer}).Draw(r, "buffered")
		var s Matches
		defer s.Close()
		var all []naiveMatch
		add := func(i int) {
			m := naiveMatch{
				chat: fmt.Sprint("c", rapid.IntRange(0, 3).Draw(r, "chat")), id: fmt.Sprintf("m%02d", i),
				createdAt: int64(rapid.IntRange(-1, 1).Draw(r, "time")), words: rapid.IntRange(1, 3).Draw(r, "words"),
				hits: []int{0, rapid.IntRange(0, 2).Draw(r, "first"), 1},
			}
			all = append(all, m)
			s.Add(m.chat, []byte(m.id), m.createdAt, m.words, [][]Hit{nil, make([]Hit, m.hits[1]), {{}}})
		}
		drop := func() {
			ids := make(map[string]bool)
			for range rapid.IntRange(0, 5).Draw(r, "dropped") {
				ids[fmt.Sprintf("m%02d", rapid.IntRange(0, 60).Draw(r, "id"))] = true
			}
			all = slices.DeleteFunc(all, func(m naiveMatch) bool { return ids[m.id] })
			s.Drop(ids)
		}
		n := rapid.IntRange(0, 60).Draw(r, "matches")
		for i := range n {
			add(i)
		}
		require.Equal(r, n, s.Len())
		drop()
		for range rapid.IntRange(0, 3).Draw(r, "again") {
			add(rapid.IntRange(0, 60).Draw(r, "id"))
		}
		sizes := map[string]int{"c0": 100, "c1": 100, "c2": 100, "c3": 7}
		for range 2 {
			require.NoError(r, s.Rank(sizes))
			want := rankNaively(all, sizes)
			sorted := s.Best(len(all) + 1)
			require.True(r, slices.IsSortedFunc(sorted, func(a, b Match) int { return a.compare(&b) }))
			require.Len(r, sorted, len(all))
			for _, m := range sorted {
				require.Positive(r, m.Rank)
			}
			require.ElementsMatch(r, want, sorted)
			limit := rapid.IntRange(1, 70).Draw(r, "limit")
			require.Equal(r, sorted[:min(limit, len(sorted))], s.Best(limit))
			require.Empty(r, s.Best(0))
			drop()
		}
	})
}

type naiveMatch struct {
	chat, id  string
	createdAt int64
	words     int
	hits      []int // by phrase
}

// rankNaively ranks matches by BM25.
func rankNaively(all []naiveMatch, sizes map[string]int) (ranked []Match) {
	for _, m := range all {
		found, words := 0, 0
		with := make([]float64, len(m.hits))
		for _, other := range all {
			if other.chat != m.chat {
				continue
			}
			found++
			words += other.words
			for phrase, hits := range other.hits {
				if hits > 0 {
					with[phrase]++
				}
			}
		}
		rank := 0.0
		for phrase, hits := range m.hits {
			if hits > 0 {
				weight := math.Log(1 + (float64(max(sizes[m.chat], found))-with[phrase]+0.5)/(with[phrase]+0.5))
				rank += weight * float64(hits) * 2.2 / (float64(hits) + 1.2*(1-0.75+0.75*float64(m.words)/max(1, float64(words)/float64(found))))
			}
		}
		ranked = append(ranked, Match{[]byte(m.id), rank, m.createdAt})
	}
	return ranked
}

// Matches that are many are in a file, and their ids are not in memory.
func TestManyMatches(t *testing.T) {
	const n = 400_000
	var s Matches
	defer s.Close()
	for i := range n {
		s.Add("", binary.BigEndian.AppendUint64([]byte("an id of some bytes"), uint64(i)), int64(i), 1, [][]Hit{{{}}})
	}
	require.NoError(t, s.Rank(map[string]int{"": n}))
	require.True(t, s.log.Mapped())
	require.LessOrEqual(t, cap(s.buffer), 2*mostBuffered)
	best := s.Best(3)
	require.Len(t, best, 3)
	require.EqualValues(t, n-1, binary.BigEndian.Uint64(best[0].ID[len(best[0].ID)-8:]))
}
