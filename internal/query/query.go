package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Query is a search query in the language of SQLite's FTS5. Invalid text is a query
// for all its words: see Parse.
type Query struct {
	op    queryOp
	parts []Query
	// Of a phrase: its words, the last of which may be a prefix. near is the maximum
	// distance of the phrases of a NEAR group.
	terms   []string
	prefix  bool
	initial bool
	near    int
	// leaves are the numbers of the terms in a matcher.
	leaves []int
}

type queryOp int

const (
	opPhrase queryOp = iota
	opNear
	opAnd
	opOr
	opNot
)

// Limits of a query.
const (
	maxDepth    = 50
	maxQuery    = 16 << 10
	defaultNear = 10
	// maxAlternatives is the maximum number of phrases joined by OR and NOT. Each of
	// them is searched for in most messages.
	maxAlternatives = 256
)

// ErrTooMany is returned for a query with too many alternatives.
var ErrTooMany = errors.New("phrases joined by OR and NOT")

var errSyntax = errors.New("invalid query")

// Parse reads a query:
//
//	word            the word in any form, by its stem
//	"two words"     a phrase
//	one + two       the same
//	wor*            words with this prefix
//	^word           at the start of the text
//	content: word   the word; content is the only column
//	a b, a AND b    both
//	a OR b          either
//	a NOT b         the first without the second
//	NEAR(a b, 5)    with at most 5 words between them; by default 10
//	( )             grouping
//
// Any other text is a query for all its words; characters without spaces between them
// are one phrase. Parse returns nil for a query without words, and ErrTooMany.
func Parse(text string) (*Query, error) {
	q, ok := parse(text)
	if !ok {
		return nil, nil
	}
	if n := q.alternatives(); n > maxAlternatives {
		return nil, fmt.Errorf("query with %d %w, at most %d", n, ErrTooMany, maxAlternatives)
	}
	return &q, nil
}

func parse(text string) (Query, bool) {
	if len(text) > maxQuery {
		text = Shorten(text, maxQuery)
	}
	p := queryParser{rest: text}
	p.next()
	q, err := p.or(0)
	if err != nil || p.kind != tokenEnd {
		q = plainQuery(text)
	}
	return q.simplified()
}

// plainQuery is the query for the words of a text.
func plainQuery(text string) Query {
	q := Query{op: opAnd}
	for field := range strings.FieldsSeq(text) {
		switch field {
		case "AND", "OR", "NOT":
			continue
		}
		if p := phraseOf(field); len(p.terms) > 0 {
			q.parts = append(q.parts, p)
		}
	}
	if len(q.parts) == 0 {
		return phraseOf(text)
	}
	return q
}

func phraseOf(text string) Query {
	var q Query
	for _, w := range Words(text) {
		if w.Term != "" {
			q.terms = append(q.terms, w.Term)
		}
	}
	return q
}

// simplified removes parts without words. It reports false if nothing remains.
func (q Query) simplified() (Query, bool) {
	if q.op == opPhrase {
		return q, len(q.terms) > 0
	}
	var parts []Query
	for i, part := range q.parts {
		part, ok := part.simplified()
		if ok {
			parts = append(parts, part)
		} else if q.op == opNot && i == 0 {
			return Query{}, false
		}
	}
	if len(parts) == 0 {
		return Query{}, false
	}
	if len(parts) == 1 {
		return parts[0], true
	}
	q.parts = parts
	return q, true
}

type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenString
	tokenMark
	tokenBad
)

type queryParser struct {
	rest string
	kind tokenKind
	text string
	// followed is the byte after the token.
	followed byte
}

// next reads a token.
func (p *queryParser) next() {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	p.text, p.kind = "", tokenEnd
	if p.rest == "" {
		return
	}
	switch c := p.rest[0]; {
	case c == '"':
		p.quoted()
	case strings.IndexByte("()*+^,:", c) >= 0:
		p.kind, p.text = tokenMark, p.rest[:1]
		p.rest = p.rest[1:]
	case IsBare(c):
		n := 1
		for n < len(p.rest) && IsBare(p.rest[n]) {
			n++
		}
		p.kind, p.text, p.rest = tokenWord, p.rest[:n], p.rest[n:]
	default:
		p.kind = tokenBad
	}
	p.followed = 0
	if p.rest != "" {
		p.followed = p.rest[0]
	}
}

// IsBare reports whether a byte is part of a word outside of quotes.
func IsBare(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c >= utf8.RuneSelf
}

// quoted reads a string, in which two quotes are an escaped quote.
func (p *queryParser) quoted() {
	var b strings.Builder
	for at := 1; at < len(p.rest); at++ {
		if p.rest[at] != '"' {
			b.WriteByte(p.rest[at])
			continue
		}
		if at+1 < len(p.rest) && p.rest[at+1] == '"' {
			b.WriteByte('"')
			at++
			continue
		}
		p.kind, p.text, p.rest = tokenString, b.String(), p.rest[at+1:]
		return
	}
	p.kind = tokenBad
}

func (p *queryParser) isMark(mark string) bool { return p.kind == tokenMark && p.text == mark }

func (p *queryParser) isOperator(name string) bool { return p.kind == tokenWord && p.text == name }

// or, and, not and both read operators, lowest precedence first.
func (p *queryParser) or(depth int) (Query, error) {
	return p.joined(depth, opOr, "OR", p.and)
}

func (p *queryParser) and(depth int) (Query, error) {
	return p.joined(depth, opAnd, "AND", p.not)
}

func (p *queryParser) joined(depth int, op queryOp, name string, operand func(int) (Query, error)) (Query, error) {
	first, err := operand(depth)
	if err != nil || !p.isOperator(name) {
		return first, err
	}
	q := Query{op: op, parts: []Query{first}}
	for p.isOperator(name) {
		p.next()
		part, err := operand(depth)
		if err != nil {
			return q, err
		}
		q.parts = append(q.parts, part)
	}
	return q, nil
}

func (p *queryParser) not(depth int) (Query, error) {
	q, err := p.both(depth)
	if err != nil || !p.isOperator("NOT") {
		return q, err
	}
	q = Query{op: opNot, parts: []Query{q}}
	for p.isOperator("NOT") {
		p.next()
		without, err := p.both(depth)
		if err != nil {
			return q, err
		}
		q.parts = append(q.parts, without)
	}
	return q, nil
}

// both reads phrases that are not separated by an operator.
func (p *queryParser) both(depth int) (Query, error) {
	q := Query{op: opAnd}
	for {
		part, err := p.operand(depth)
		if err != nil {
			return q, err
		}
		q.parts = append(q.parts, part)
		switch {
		case p.isOperator("AND"), p.isOperator("OR"), p.isOperator("NOT"),
			p.kind == tokenEnd, p.isMark(")"):
			if len(q.parts) == 1 {
				return q.parts[0], nil
			}
			return q, nil
		}
	}
}

func (p *queryParser) operand(depth int) (Query, error) {
	if depth > maxDepth {
		return Query{}, errSyntax
	}
	switch {
	case p.isMark("("):
		p.next()
		q, err := p.or(depth + 1)
		if err != nil || !p.isMark(")") {
			return q, errSyntax
		}
		p.next()
		return q, nil
	case p.isOperator("NEAR") && p.followed == '(':
		return p.nearGroup()
	}
	return p.phrase()
}

// phrase reads words and strings joined by +, with the optional column, ^ and *.
func (p *queryParser) phrase() (Query, error) {
	var q Query
	if p.isOperator("content") && strings.HasPrefix(strings.TrimLeft(p.rest, " "), ":") {
		p.next() // the only column with text
		p.next()
	}
	if p.isMark("^") {
		q.initial = true
		p.next()
	}
	for {
		if p.kind != tokenWord && p.kind != tokenString || p.isOperator("AND") || p.isOperator("OR") || p.isOperator("NOT") {
			return q, errSyntax
		}
		q.terms = append(q.terms, phraseOf(p.text).terms...)
		p.next()
		if !p.isMark("+") {
			break
		}
		p.next()
	}
	if p.isMark("*") {
		q.prefix = true
		p.next()
	}
	return q, nil
}

func (p *queryParser) nearGroup() (Query, error) {
	p.next()
	p.next()
	q := Query{op: opNear, near: defaultNear}
	for !p.isMark(",") && !p.isMark(")") {
		part, err := p.phrase()
		if err != nil {
			return q, err
		}
		q.parts = append(q.parts, part)
	}
	if p.isMark(",") {
		p.next()
		n := 0
		for _, c := range []byte(p.text) {
			if p.kind != tokenWord || c < '0' || c > '9' || n > 1<<20 {
				return q, errSyntax
			}
			n = 10*n + int(c-'0')
		}
		q.near = n
		p.next()
	}
	if !p.isMark(")") || len(q.parts) == 0 {
		return q, errSyntax
	}
	p.next()
	return q, nil
}

// alternatives returns the number of phrases joined by OR or NOT.
func (q Query) alternatives() (n int) {
	for _, part := range q.parts {
		if q.op == opOr || q.op == opNot {
			n += part.phrases()
		} else {
			n += part.alternatives()
		}
	}
	return n
}

// phrases returns the number of phrases.
func (q Query) phrases() (n int) {
	if q.op == opPhrase {
		return 1
	}
	for _, part := range q.parts {
		n += part.phrases()
	}
	return n
}

// Condition is a necessary condition for a match that an index can check: a term of
// the message, or several conditions. With neither, every message fulfils it.
type Condition struct {
	Term   string
	Prefix bool
	Or     bool
	Parts  []Condition
}

// IsAny reports whether every message fulfils the condition.
func (c Condition) IsAny() bool { return c.Term == "" && len(c.Parts) == 0 }

// maxConditions is the maximum number of terms in a condition. A query may have more.
const maxConditions = 40

// Condition returns the query's condition.
func (q Query) Condition() Condition {
	left := maxConditions
	return q.conditions(&left)
}

func (q Query) conditions(left *int) Condition {
	switch q.op {
	case opNot:
		return q.parts[0].conditions(left)
	case opPhrase:
		var c Condition
		for i, term := range q.terms {
			if *left == 0 {
				break
			}
			*left--
			c.Parts = append(c.Parts, Condition{Term: term, Prefix: q.prefix && i == len(q.terms)-1})
		}
		return c.single()
	}
	c := Condition{Or: q.op == opOr}
	for _, part := range q.parts {
		p := part.conditions(left)
		if !p.IsAny() {
			c.Parts = append(c.Parts, p)
		} else if c.Or {
			return Condition{}
		}
	}
	return c.single()
}

func (c Condition) single() Condition {
	if len(c.Parts) == 1 {
		return c.Parts[0]
	}
	return c
}
