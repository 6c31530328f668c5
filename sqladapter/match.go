package sqladapter

import (
	"slices"
	"sort"
)

// hit is a phrase found: its first word and how many it has.
type hit struct{ at, length int }

// A leaf is a word of a query, or the start of one.
type leaf struct {
	term   string
	prefix bool
}

// matcher finds a query in one message after another. It reuses memory from one to the next.
type matcher struct {
	q *query
	// leaves are the words of the query, each once, in order, and places where they
	// are in the message.
	leaves []leaf
	places [][]int32
	// found has the hits of each phrase, in the order of phrases, as far as they were
	// looked for.
	found [][]hit
	// open are the prefix leaves that the next words, in order, may begin with.
	open []int
}

// newMatcher returns a matcher of a query, which becomes its own.
func newMatcher(q *query) *matcher {
	m := &matcher{q: q}
	seen := make(map[leaf]bool)
	q.eachWord(func(_ *query, _ int, l leaf) {
		if !seen[l] {
			seen[l] = true
			m.leaves = append(m.leaves, l)
		}
	})
	sort.Slice(m.leaves, func(i, j int) bool { return m.leaves[i].before(m.leaves[j]) })
	m.places = make([][]int32, len(m.leaves))
	q.eachWord(func(phrase *query, i int, l leaf) {
		phrase.leaves = append(phrase.leaves[:i], sort.Search(len(m.leaves), func(n int) bool { return !m.leaves[n].before(l) }))
	})
	return m
}

func (l leaf) before(o leaf) bool {
	return l.term < o.term || l.term == o.term && !l.prefix && o.prefix
}

// eachWord calls a function with each word of each phrase.
func (q *query) eachWord(do func(phrase *query, i int, l leaf)) {
	for i, term := range q.terms {
		do(q, i, leaf{term, q.prefix && i == len(q.terms)-1})
	}
	for i := range q.parts {
		q.parts[i].eachWord(do)
	}
}

func (m *matcher) forget() {
	for i := range m.places {
		m.places[i] = m.places[i][:0]
	}
}

// matchWords reports whether words match, and has what was found of each phrase.
func (m *matcher) matchWords(words []word) bool {
	m.forget()
	for at := range words {
		m.eachLeaf(words[at].term, func(i int) { m.places[i] = append(m.places[i], int32(at)) })
	}
	return m.match()
}

// eachLeaf calls a function with each leaf that is the term or begins it.
func (m *matcher) eachLeaf(term string, do func(i int)) {
	for n := range len(term) {
		at := sort.Search(len(m.leaves), func(i int) bool { return m.leaves[i].term >= term[:n+1] })
		if at == len(m.leaves) {
			return
		}
		for ; at < len(m.leaves) && m.leaves[at].term == term[:n+1]; at++ {
			if m.leaves[at].prefix || n+1 == len(term) {
				do(at)
			}
		}
	}
}

// matchCard is matchWords for a card with its words on it. It reports as well
// whether the card can be read.
func (m *matcher) matchCard(c *card) (matches, ok bool) {
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
		for len(m.open) > 0 && !begins(term, m.leaves[m.open[len(m.open)-1]].term) {
			m.open = m.open[:len(m.open)-1]
		}
		for ; next < len(m.leaves) && m.leaves[next].term <= string(term); next++ {
			switch l := &m.leaves[next]; {
			case l.prefix && begins(term, l.term):
				m.open = append(m.open, next)
			case !l.prefix && l.term == string(term):
				if m.places[next], ok = readPlaces(m.places[next], places, c.words); !ok {
					return false, false
				}
			}
		}
		for _, i := range m.open {
			if m.places[i], ok = readPlaces(m.places[i], places, c.words); !ok {
				return false, false
			}
		}
		if next == len(m.leaves) && len(m.open) == 0 {
			break
		}
	}
	for i := range m.leaves {
		if m.leaves[i].prefix && !slices.IsSorted(m.places[i]) {
			slices.Sort(m.places[i])
		}
	}
	return m.match(), true
}

func begins(term []byte, with string) bool {
	return len(term) >= len(with) && string(term[:len(with)]) == with
}

// match matches what the leaves' places say.
func (m *matcher) match() bool {
	m.found = m.found[:0]
	return m.matches(m.q, true)
}

// room returns memory for the hits of another phrase.
func (m *matcher) room() []hit {
	if n := len(m.found); n < cap(m.found) {
		return m.found[:n+1][n][:0]
	}
	return nil
}

// matches reports whether the message is what a query looks for. Where the phrases
// are is kept for those that are wanted.
func (m *matcher) matches(q *query, wanted bool) bool {
	switch q.op {
	case opPhrase:
		if !wanted {
			return len(m.find(q, nil)) > 0
		}
		hits := m.find(q, m.room())
		m.found = append(m.found, hits)
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
func (m *matcher) find(q *query, hits []hit) []hit {
	for _, at := range m.places[q.leaves[0]] {
		if q.initial && at > 0 {
			break
		}
		if m.goesOn(q, at) {
			hits = append(hits, hit{int(at), len(q.leaves)})
		}
	}
	return hits
}

// goesOn reports whether a phrase whose first word is at a place has its others
// behind it.
func (m *matcher) goesOn(q *query, at int32) bool {
	for i, l := range q.leaves[1:] {
		if _, is := slices.BinarySearch(m.places[l], at+1+int32(i)); !is {
			return false
		}
	}
	return true
}

func (m *matcher) matchesNear(q *query, wanted bool) bool {
	groups := make([][]hit, len(q.parts))
	for i := range q.parts {
		groups[i] = m.find(&q.parts[i], nil)
	}
	near := make([][]hit, len(groups))
	nearest := make([]hit, len(groups))
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
		m.found = append(m.found, near...)
	}
	return matches
}
