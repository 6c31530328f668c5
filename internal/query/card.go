package query

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A Card contains what a search needs to match and rank a message, so that the message
// itself is read only if it is among the hits: its time, id and role, its number of
// words, and the places of each of its terms. Numbers are varints:
//
//	'w', or 'm' if the entries are missing and the message has to be read
//	the time, in milliseconds, zigzag
//	the length of the id, the id, the length of the role, the role
//	the number of words
//	for each term, in byte order: its length, the term,
//	  the length of its places in bytes, the first place, and the distances to the next
type Card struct {
	ID, Role  []byte
	CreatedAt int64
	// Listed is false if the entries are missing and the message has to be read.
	Listed bool
	// Words is the number of words of the message; entries are its terms.
	Words   int
	entries []byte
}

const (
	cardListed = 'w'
	cardBare   = 'm'
)

// maxCard is the maximum size of a card with entries.
const maxCard = 1 << 20

// ReadCard decodes a card, which refers to the memory of b. It reports false for bytes
// that are not a card. Errors in the entries are found when those are read.
func ReadCard(b []byte) (c Card, ok bool) {
	if len(b) == 0 || b[0] != cardListed && b[0] != cardBare {
		return c, false
	}
	c.Listed = b[0] == cardListed
	at, n := binary.Varint(b[1:])
	if n <= 0 {
		return c, false
	}
	c.CreatedAt = at
	b = b[1+n:]
	if c.ID, b, ok = cutBytes(b); !ok {
		return c, false
	}
	if c.Role, b, ok = cutBytes(b); !ok {
		return c, false
	}
	words, n := binary.Uvarint(b)
	if n <= 0 || words > 1<<31-1 {
		return c, false
	}
	c.Words, c.entries = int(words), b[n:]
	return c, true
}

// cutBytes cuts off a byte string with a length prefix.
func cutBytes(b []byte) (part, rest []byte, ok bool) {
	if len(b) > 0 && b[0] < 0x80 && int(b[0]) < len(b) { // nearly always
		n := 1 + int(b[0])
		return b[1:n], b[n:], true
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// readPlaces appends the places of an entry to a list. It reports false for places
// that are not possible with that number of words.
func readPlaces(places []int32, b []byte, words int) ([]int32, bool) {
	at := uint64(0)
	for first := true; len(b) > 0; first = false {
		step, n := binary.Uvarint(b)
		if n <= 0 || step >= uint64(words)-at || step == 0 && !first {
			return places, false
		}
		at += step
		places = append(places, int32(at))
		b = b[n:]
	}
	return places, true
}

// Cataloguer creates cards. It reuses memory between messages.
type Cataloguer struct {
	known Terms
	terms []termPlaces
	slots map[string]int // indexes in terms
	// next is, for each word, the next one of the same term, or 0.
	next    []int32
	card    []byte
	scratch []byte
}

// termPlaces is a term with its first and last word.
type termPlaces struct {
	term        string
	first, last int32
}

// NewCataloguer returns a cataloguer.
func NewCataloguer() *Cataloguer {
	return &Cataloguer{known: make(Terms), slots: make(map[string]int)}
}

// Sort finds the terms of a text, in order, and returns the number of words.
func (c *Cataloguer) Sort(text string) int {
	clear(c.slots)
	c.terms, c.next = c.terms[:0], c.next[:0]
	words := int32(0)
	EachWord(text, func(start, end int) {
		term := c.known.Of(text[start:end])
		at := words
		words++
		c.next = append(c.next, 0)
		if term == "" {
			return
		}
		slot, ok := c.slots[term]
		if !ok {
			c.slots[term] = len(c.terms)
			c.terms = append(c.terms, termPlaces{term, at, at})
			return
		}
		t := &c.terms[slot]
		c.next[t.last] = at
		t.last = at
	})
	slices.SortFunc(c.terms, func(a, b termPlaces) int { return strings.Compare(a.term, b.term) })
	return int(words)
}

// Each calls a function with each term of the last Sort, in order.
func (c *Cataloguer) Each(do func(term string)) {
	for i := range c.terms {
		do(c.terms[i].term)
	}
}

// Card returns the card of the message of the last Sort.
func (c *Cataloguer) Card(id, role string, createdAt int64, words int) []byte {
	head := func(kind byte) {
		c.card = append(c.card[:0], kind)
		c.card = binary.AppendVarint(c.card, createdAt)
		c.card = append(binary.AppendUvarint(c.card, uint64(len(id))), id...)
		c.card = append(binary.AppendUvarint(c.card, uint64(len(role))), role...)
		c.card = binary.AppendUvarint(c.card, uint64(words))
	}
	head(cardListed)
	for _, t := range c.terms {
		c.card = append(binary.AppendUvarint(c.card, uint64(len(t.term))), t.term...)
		c.scratch = binary.AppendUvarint(c.scratch[:0], uint64(t.first))
		for at := t.first; at != t.last; {
			next := c.next[at]
			c.scratch = binary.AppendUvarint(c.scratch, uint64(next-at))
			at = next
		}
		c.card = append(binary.AppendUvarint(c.card, uint64(len(c.scratch))), c.scratch...)
		if len(c.card) > maxCard {
			head(cardBare)
			break
		}
	}
	return slices.Clone(c.card)
}
