package query

import (
	"slices"
	"sort"
	"strings"
)

// A Hit is an occurrence of a phrase: its first word and its number of words.
type Hit struct{ at, length int }

// A Leaf is a word of a query, or a prefix.
type Leaf struct {
	Term   string
	Prefix bool
}

// Matcher matches a query with one message after another. It reuses memory between
// messages.
type Matcher struct {
	q *Query
	// leaves are the distinct words of the query, in order. places has the places of each in the message.
	leaves []Leaf
	places [][]int32
	// Found has the hits of each phrase, in the order of phrases, as far as they were
	// needed.
	Found [][]Hit
	// open are the prefix leaves that the current term starts with.
	open []int
}

// NewMatcher returns a matcher of a query. It modifies q.
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
	// The words of each phrase, as indexes of leaves.
	q.eachWord(func(phrase *Query, i int, l Leaf) {
		phrase.leaves = append(phrase.leaves[:i], sort.Search(len(m.leaves), func(n int) bool { return !m.leaves[n].before(l) }))
	})
	return m
}

func (l Leaf) before(o Leaf) bool {
	return l.Term < o.Term || l.Term == o.Term && !l.Prefix && o.Prefix
}

// eachWord calls a function with each word of each phrase.
func (q *Query) eachWord(visit func(phrase *Query, i int, l Leaf)) {
	for i, term := range q.terms {
		visit(q, i, Leaf{term, q.prefix && i == len(q.terms)-1})
	}
	for i := range q.parts {
		q.parts[i].eachWord(visit)
	}
}

// Leaves returns the leaves, in the order of their numbers.
func (m *Matcher) Leaves() []Leaf { return m.leaves }

// Condition returns the condition of the query.
func (m *Matcher) Condition() Condition { return m.q.Condition() }

// PieceWords is the maximum number of words of a piece of a message. The first word
// of piece n, counted from 0, has the place n * PieceWords, so that no phrase spans
// pieces.
const PieceWords = 1 << 21

// MaxPieces is the maximum number of pieces of a message.
const MaxPieces = 1023

// MatchPlaces reports whether a message with the given places of leaves matches, and
// sets Found. It calls fill once with a function that adds a place of a leaf.
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

// MatchWords reports whether words match, and sets Found.
func (m *Matcher) MatchWords(words []Word) bool {
	m.forget()
	for at := range words {
		m.eachLeaf(words[at].Term, func(i int) { m.places[i] = append(m.places[i], int32(at)) })
	}
	return m.match()
}

// eachLeaf calls a function with each leaf that matches the term.
func (m *Matcher) eachLeaf(term string, visit func(i int)) {
	for n := range len(term) {
		at := sort.Search(len(m.leaves), func(i int) bool { return m.leaves[i].Term >= term[:n+1] })
		if at == len(m.leaves) {
			return
		}
		for ; at < len(m.leaves) && m.leaves[at].Term == term[:n+1]; at++ {
			if m.leaves[at].Prefix || n+1 == len(term) {
				visit(at)
			}
		}
	}
}

// MatchCard is MatchWords for a listed card. ok is false if the card is damaged.
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
		// Terms and leaves are sorted; the terms with the same prefix are together.
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

func begins(term []byte, prefix string) bool {
	return len(term) >= len(prefix) && string(term[:len(prefix)]) == prefix
}

// match evaluates the query on the places.
func (m *Matcher) match() bool {
	m.Found = m.Found[:0]
	return m.matches(m.q, true)
}

// nextHits returns the memory for the hits of another phrase.
func (m *Matcher) nextHits() []Hit {
	if n := len(m.Found); n < cap(m.Found) {
		return m.Found[:n+1][n][:0]
	}
	return nil
}

// matches evaluates a query. If wanted, it adds the hits of its phrases to Found.
func (m *Matcher) matches(q *Query, wanted bool) bool {
	switch q.op {
	case opPhrase:
		if !wanted {
			return len(m.find(q, nil)) > 0
		}
		hits := m.find(q, m.nextHits())
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
		// Evaluate every part, since each has its index in Found.
		part := m.matches(&q.parts[i], wanted)
		if q.op == opAnd {
			matches = matches && part
		} else {
			matches = matches || part
		}
	}
	return matches
}

// find appends the hits of a phrase.
func (m *Matcher) find(q *Query, hits []Hit) []Hit {
	for _, at := range m.places[q.leaves[0]] {
		if q.initial && at%PieceWords != 0 {
			continue
		}
		if m.follow(q, at) {
			hits = append(hits, Hit{int(at), len(q.leaves)})
		}
	}
	return hits
}

// follow reports whether the other words of a phrase follow its first word at a
// place.
func (m *Matcher) follow(q *Query, at int32) bool {
	for i, l := range q.leaves[1:] {
		if _, ok := slices.BinarySearch(m.places[l], at+1+int32(i)); !ok {
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

// MatchPieces is MatchPlaces for a message of several texts. It returns the texts
// joined by line breaks, and the words of that. The places in Found are indexes of
// these words.
func (m *Matcher) MatchPieces(texts []string) (joined string, words []Word, matches bool) {
	joined = strings.Join(texts, "\n")
	starts := make([]int, 0, len(texts)+1) // the first word of each text
	matches = m.MatchPlaces(func(place func(leaf int, at int32)) {
		from := 0
		for i, text := range texts {
			starts = append(starts, len(words))
			for at, w := range Words(text) {
				words = append(words, Word{Term: w.Term, Start: w.Start + from, End: w.End + from})
				if i < MaxPieces && at < PieceWords-1 {
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
