package query

import (
	"slices"
	"sort"
	"strings"
)

// A Hit is a phrase found: its first word and how many it has.
type Hit struct{ at, length int }

// A Leaf is a word of a query, or the start of one.
type Leaf struct {
	Term   string
	Prefix bool
}

// Matcher finds a query in one message after another. It keeps room from one to the
// next.
type Matcher struct {
	q *Query
	// leaves are the words of the query, each once, in order, and places where they
	// are in the message.
	leaves []Leaf
	places [][]int32
	// Found has the hits of each phrase, in the order of phrases, as far as they were
	// looked for.
	Found [][]Hit
	// open are leaves that words may go on to begin with.
	open []int
}

// NewMatcher returns a matcher of a query, which becomes its own.
func NewMatcher(q *Query) *Matcher {
	m := &Matcher{q: q}
	seen := make(map[Leaf]bool)
	q.eachWord(func(_ *Query, _ int, l Leaf) {
		if !seen[l] {
			seen[l] = true
			m.leaves = append(m.leaves, l)
		}
	})
	sort.Slice(m.leaves, func(i, j int) bool { return m.leaves[i].before(m.leaves[j]) })
	m.places = make([][]int32, len(m.leaves))
	q.eachWord(func(phrase *Query, i int, l Leaf) {
		phrase.leaves = append(phrase.leaves[:i], sort.Search(len(m.leaves), func(n int) bool { return !m.leaves[n].before(l) }))
	})
	return m
}

func (l Leaf) before(o Leaf) bool {
	return l.Term < o.Term || l.Term == o.Term && !l.Prefix && o.Prefix
}

// eachWord calls a function with each word of each phrase.
func (q *Query) eachWord(do func(phrase *Query, i int, l Leaf)) {
	for i, term := range q.terms {
		do(q, i, Leaf{term, q.prefix && i == len(q.terms)-1})
	}
	for i := range q.parts {
		q.parts[i].eachWord(do)
	}
}

// Leaves returns the words that are looked for, in the order of their numbers.
func (m *Matcher) Leaves() []Leaf { return m.leaves }

// PieceWords is the most words of a piece of a message. Its n-th piece, from 0, has its first word at the place
// n * PieceWords, so that no phrase goes from one piece to the next.
const PieceWords = 1 << 21

// MostPieces is how many pieces of a message can be matched.
const MostPieces = 1023

// MatchPlaces reports whether a message matches that has leaves at places, and has what was found of each phrase. fill
// is called once with a function that adds a place of a leaf.
func (m *Matcher) MatchPlaces(fill func(place func(leaf int, at int32))) bool {
	m.forget()
	fill(func(leaf int, at int32) { m.places[leaf] = append(m.places[leaf], at) })
	for i, places := range m.places {
		slices.Sort(places)
		m.places[i] = slices.Compact(places)
	}
	return m.match()
}

func (m *Matcher) forget() {
	for i := range m.places {
		m.places[i] = m.places[i][:0]
	}
}

// MatchWords reports whether words match, and has what was found of each phrase.
func (m *Matcher) MatchWords(words []Word) bool {
	m.forget()
	for at := range words {
		m.eachLeaf(words[at].Term, func(i int) { m.places[i] = append(m.places[i], int32(at)) })
	}
	return m.match()
}

// eachLeaf calls a function with each leaf that is the term or begins it.
func (m *Matcher) eachLeaf(term string, do func(i int)) {
	for n := range len(term) {
		at := sort.Search(len(m.leaves), func(i int) bool { return m.leaves[i].Term >= term[:n+1] })
		if at == len(m.leaves) {
			return
		}
		for ; at < len(m.leaves) && m.leaves[at].Term == term[:n+1]; at++ {
			if m.leaves[at].Prefix || n+1 == len(term) {
				do(at)
			}
		}
	}
}

// MatchCard is MatchWords for a card with its words on it. It reports as well
// whether the card can be read.
func (m *Matcher) MatchCard(c *Card) (matches, ok bool) {
	m.forget()
	m.open = m.open[:0]
	next := 0
	for rest := c.entries; len(rest) > 0; {
		term, after, ok := cutBytes(rest)
		if !ok {
			return false, false
		}
		places, after, ok := cutBytes(after)
		if !ok {
			return false, false
		}
		rest = after
		// Both are in order, and so are the words that begin like a leaf.
		for len(m.open) > 0 && !begins(term, m.leaves[m.open[len(m.open)-1]].Term) {
			m.open = m.open[:len(m.open)-1]
		}
		for ; next < len(m.leaves) && m.leaves[next].Term <= string(term); next++ {
			switch l := &m.leaves[next]; {
			case l.Prefix && begins(term, l.Term):
				m.open = append(m.open, next)
			case !l.Prefix && l.Term == string(term):
				if m.places[next], ok = readPlaces(m.places[next], places, c.Words); !ok {
					return false, false
				}
			}
		}
		for _, i := range m.open {
			if m.places[i], ok = readPlaces(m.places[i], places, c.Words); !ok {
				return false, false
			}
		}
		if next == len(m.leaves) && len(m.open) == 0 {
			break
		}
	}
	for i := range m.leaves {
		if m.leaves[i].Prefix && !slices.IsSorted(m.places[i]) {
			slices.Sort(m.places[i])
		}
	}
	return m.match(), true
}

func begins(term []byte, with string) bool {
	return len(term) >= len(with) && string(term[:len(with)]) == with
}

// match matches what the leaves' places say.
func (m *Matcher) match() bool {
	m.Found = m.Found[:0]
	return m.matches(m.q, true)
}

// room returns room for the hits of another phrase.
func (m *Matcher) room() []Hit {
	if n := len(m.Found); n < cap(m.Found) {
		return m.Found[:n+1][n][:0]
	}
	return nil
}

// matches reports whether the message is what a query looks for. Where the phrases
// are is kept for those that are wanted.
func (m *Matcher) matches(q *Query, wanted bool) bool {
	switch q.op {
	case opPhrase:
		if !wanted {
			return len(m.find(q, nil)) > 0
		}
		hits := m.find(q, m.room())
		m.Found = append(m.Found, hits)
		return len(hits) > 0
	case opNear:
		return m.matchesNear(q, wanted)
	case opNot:
		matches := m.matches(&q.parts[0], wanted)
		for i := range q.parts[1:] {
			matches = matches && !m.matches(&q.parts[1+i], false)
		}
		return matches
	}
	matches := q.op == opAnd
	for i := range q.parts {
		// Every part is looked at, as every one has its place among the phrases.
		part := m.matches(&q.parts[i], wanted)
		if q.op == opAnd {
			matches = matches && part
		} else {
			matches = matches || part
		}
	}
	return matches
}

// find appends where a phrase is.
func (m *Matcher) find(q *Query, hits []Hit) []Hit {
	for _, at := range m.places[q.leaves[0]] {
		if q.initial && at%PieceWords != 0 {
			continue
		}
		if m.goesOn(q, at) {
			hits = append(hits, Hit{int(at), len(q.leaves)})
		}
	}
	return hits
}

// goesOn reports whether a phrase whose first word is at a place has its others
// behind it.
func (m *Matcher) goesOn(q *Query, at int32) bool {
	for i, l := range q.leaves[1:] {
		if _, is := slices.BinarySearch(m.places[l], at+1+int32(i)); !is {
			return false
		}
	}
	return true
}

func (m *Matcher) matchesNear(q *Query, wanted bool) bool {
	groups := make([][]Hit, len(q.parts))
	for i := range q.parts {
		groups[i] = m.find(&q.parts[i], nil)
	}
	near := make([][]Hit, len(groups))
	nearest := make([]Hit, len(groups))
	matches := false
	for _, firsts := range groups {
		for _, first := range firsts {
			complete := true
			for i, hits := range groups {
				at := sort.Search(len(hits), func(n int) bool { return hits[n].at >= first.at })
				if at == len(hits) || hits[at].at-(first.at+first.length) > q.near {
					complete = false
					break
				}
				nearest[i] = hits[at]
			}
			if complete {
				matches = true
				for i, h := range nearest {
					near[i] = append(near[i], h)
				}
			}
		}
	}
	if wanted {
		m.Found = append(m.Found, near...)
	}
	return matches
}

// MatchPieces is MatchPlaces for a message of several texts. It returns them joined by line breaks, with their words. What
// was found of each phrase is where it is among these.
func (m *Matcher) MatchPieces(texts []string) (joined string, words []Word, matches bool) {
	joined = strings.Join(texts, "\n")
	starts := make([]int, 0, len(texts)+1) // the first word of each text
	matches = m.MatchPlaces(func(place func(leaf int, at int32)) {
		from := 0
		for i, text := range texts {
			starts = append(starts, len(words))
			for at, w := range Words(text) {
				words = append(words, Word{Term: w.Term, Start: w.Start + from, End: w.End + from})
				if i < MostPieces && at < PieceWords-1 {
					m.eachLeaf(w.Term, func(leaf int) { place(leaf, int32(i*PieceWords+at)) })
				}
			}
			from += len(text) + 1
		}
	})
	for _, hits := range m.Found {
		for i := range hits {
			hits[i].at = starts[hits[i].at/PieceWords] + hits[i].at%PieceWords
		}
	}
	return joined, words, matches
}
