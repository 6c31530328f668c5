package query

import (
	"encoding/binary"
	"slices"
	"strings"
)

// A Card has what a search needs to know of a message to match and rank it, so that
// the message itself is read only if it is among the hits: when it was made, its id
// and role, how many words it has, and where each of its terms is. Numbers are
// varints:
//
//	'w', or 'm' when the words are not on it and the message itself has to be read
//	the time, in milliseconds, zigzag
//	the length of the id, the id, the length of the role, the role
//	the number of words
//	for each term, in the order of their bytes: its length, the term,
//	  the length of its places, and these: the first, then the steps to the next
type Card struct {
	ID, Role  []byte
	CreatedAt int64
	// Listed says that the words are on it.
	Listed bool
	// Words is how many words the message has, and entries are its terms.
	Words   int
	entries []byte
}

const (
	cardListed = 'w'
	cardBare   = 'm'
)

// largestCard is the most bytes of a card with its words.
const largestCard = 1 << 20

// ReadCard reads a card, as part of the bytes given. It reports false for bytes that
// are none. What is wrong in the entries shows when they are read.
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

// cutBytes cuts off bytes that have their length before them.
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

// readPlaces appends the places that an entry has to a list. It reports false for
// those that no message of so many words can have.
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

// Cataloguer makes the search data of messages. It reuses memory from one to the next.
type Cataloguer struct {
	known Terms
	slots map[string]int
	terms []termPlaces
	// next has, for each word, the next one of its term, or 0.
	next    []int32
	card    []byte
	scratch []byte
}

// termPlaces is a term and the first and last of its words.
type termPlaces struct {
	term        string
	first, last int32
}

// NewCataloguer returns a cataloguer.
func NewCataloguer() *Cataloguer {
	return &Cataloguer{known: make(Terms), slots: make(map[string]int)}
}

// Sort finds the terms of a text, in order, and returns how many words it has.
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

// Each calls a function with each term that was found, in order.
func (c *Cataloguer) Each(do func(term string)) {
	for i := range c.terms {
		do(c.terms[i].term)
	}
}

// Card returns the card of the message whose terms were found. It has so many words.
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
		if len(c.card) > largestCard {
			head(cardBare)
			break
		}
	}
	return slices.Clone(c.card)
}
