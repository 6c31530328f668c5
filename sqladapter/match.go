package sqladapter

import (
	"math"
	"sort"
	"strings"
)

// document is a text to be matched.
type document struct {
	text   string
	words  []word
	places map[string][]int // of each term, in order
	// sorted are the terms, for prefixes; made when there is need.
	sorted []string
}

func newDocument(text string) *document {
	d := &document{text: text, words: wordsOf(text)}
	d.places = make(map[string][]int, len(d.words))
	for i, w := range d.words {
		d.places[w.term] = append(d.places[w.term], i)
	}
	return d
}

// hit is a phrase found: its first word and how many it has.
type hit struct{ at, length int }

// find returns where a phrase is.
func (d *document) find(q *query) []hit {
	last := len(q.terms) - 1
	var hits []hit
	for _, at := range d.starts(q) {
		if q.initial && at > 0 {
			break
		}
		if at+last < len(d.words) && d.matchesAt(q, at) {
			hits = append(hits, hit{at, last + 1})
		}
	}
	return hits
}

func (d *document) matchesAt(q *query, at int) bool {
	last := len(q.terms) - 1
	for i, term := range q.terms {
		is := d.words[at+i].term
		if is != term && !(q.prefix && i == last && strings.HasPrefix(is, term)) {
			return false
		}
	}
	return true
}

// starts returns where the first word of a phrase is.
func (d *document) starts(q *query) []int {
	term := q.terms[0]
	if !q.prefix || len(q.terms) > 1 {
		return d.places[term]
	}
	if d.sorted == nil {
		for t := range d.places {
			d.sorted = append(d.sorted, t)
		}
		sort.Strings(d.sorted)
	}
	var starts []int
	for i := sort.SearchStrings(d.sorted, term); i < len(d.sorted) && strings.HasPrefix(d.sorted[i], term); i++ {
		starts = append(starts, d.places[d.sorted[i]]...)
	}
	sort.Ints(starts)
	return starts
}

// match reports whether a text is what a query looks for, and where each of its
// phrases is, in the order of phrases.
func (d *document) match(q *query, found *[][]hit) bool {
	switch q.op {
	case opPhrase:
		hits := d.find(q)
		*found = append(*found, hits)
		return len(hits) > 0
	case opNear:
		return d.matchNear(q, found)
	case opNot:
		matches := d.match(&q.parts[0], found)
		for i := range q.parts[1:] {
			var ignored [][]hit
			matches = matches && !d.match(&q.parts[1+i], &ignored)
		}
		return matches
	}
	matches := q.op == opAnd
	for i := range q.parts {
		// Every part is looked at, as every one has its place among the phrases.
		part := d.match(&q.parts[i], found)
		if q.op == opAnd {
			matches = matches && part
		} else {
			matches = matches || part
		}
	}
	return matches
}

func (d *document) matchNear(q *query, found *[][]hit) bool {
	groups := make([][]hit, len(q.parts))
	for i := range q.parts {
		groups[i] = d.find(&q.parts[i])
	}
	near := make([][]hit, len(groups))
	matches := false
	for _, firsts := range groups {
		for _, first := range firsts {
			nearest := make([]hit, len(groups))
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
	*found = append(*found, near...)
	return matches
}

// A match is a message that a query found.
type match struct {
	id        string
	createdAt int64
	length    int
	counts    []int // of each phrase
	rank      float64
}

// rankMatches ranks what was found in a chat of so many messages by BM25, the
// higher the better. Nothing outside of the chat has an influence.
func rankMatches(matches []match, messages int) {
	const k1, b = 1.2, 0.75
	if len(matches) == 0 {
		return
	}
	phrases := len(matches[0].counts)
	with := make([]int, phrases)
	words := 0
	for _, m := range matches {
		words += m.length
		for i, n := range m.counts {
			if n > 0 {
				with[i]++
			}
		}
	}
	average := max(1, float64(words)/float64(len(matches)))
	total := float64(max(messages, len(matches)))
	for i := range matches {
		m := &matches[i]
		m.rank = 0
		for j, n := range m.counts {
			if n == 0 {
				continue
			}
			weight := math.Log(1 + (total-float64(with[j])+0.5)/(float64(with[j])+0.5))
			count := float64(n)
			m.rank += weight * count * (k1 + 1) / (count + k1*(1-b+b*float64(m.length)/average))
		}
	}
}

// snippetWords is how many words a snippet has.
const snippetWords = 32

// snippet returns the part of a text with the most of what was found, which stands
// between <mark> and </mark>.
func (d *document) snippet(found [][]hit) string {
	marked := make([]bool, len(d.words))
	joined := make([]bool, len(d.words)) // with the word before, by one phrase
	var starts []int
	for _, hits := range found {
		for _, h := range hits {
			starts = append(starts, h.at)
			for i := range h.length {
				marked[h.at+i] = true
				joined[h.at+i] = joined[h.at+i] || i > 0
			}
		}
	}
	if len(d.words) == 0 {
		return ""
	}
	from := d.bestWindow(starts)
	to := min(from+snippetWords, len(d.words))
	var b strings.Builder
	at := 0
	if from > 0 {
		b.WriteString("...")
		at = d.words[from].start
	}
	for i := from; i < to; i++ {
		w := d.words[i]
		begins := marked[i] && (i == from || !joined[i])
		ends := marked[i] && (i+1 == to || !joined[i+1])
		if begins {
			b.WriteString(d.text[at:w.start] + "<mark>")
			at = w.start
		}
		if ends {
			b.WriteString(d.text[at:w.end] + "</mark>")
			at = w.end
		}
	}
	if to < len(d.words) {
		b.WriteString(d.text[at:d.words[to-1].end] + "...")
	} else {
		b.WriteString(d.text[at:])
	}
	return b.String()
}

// bestWindow returns the first word of the window with the most hits, which are
// put a little behind its start.
func (d *document) bestWindow(starts []int) int {
	sort.Ints(starts)
	best, most := 0, 0
	for i, at := range starts {
		from := max(0, min(at-4, len(d.words)-snippetWords))
		n := sort.SearchInts(starts, from+snippetWords) - i
		if n > most {
			best, most = from, n
		}
	}
	return best
}
