package sqladapter

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage/chat"
)

// A card has what a search needs to know of a message to match and rank it, so that
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
type card struct {
	id, role  []byte
	createdAt int64
	// listed says that the words are on it.
	listed bool
	// words is how many words the message has, and entries are its terms.
	words   int
	entries []byte
}

const (
	cardListed = 'w'
	cardBare   = 'm'
)

// largestCard is the most bytes of a card with its words.
const largestCard = 1 << 20

// readCard reads a card, as part of the bytes given. It reports false for bytes that
// are none. What is wrong in the entries shows when they are read.
func readCard(b []byte) (c card, ok bool) {
	if len(b) == 0 || b[0] != cardListed && b[0] != cardBare {
		return c, false
	}
	c.listed = b[0] == cardListed
	at, n := binary.Varint(b[1:])
	if n <= 0 {
		return c, false
	}
	c.createdAt = at
	b = b[1+n:]
	if c.id, b, ok = cutBytes(b); !ok {
		return c, false
	}
	if c.role, b, ok = cutBytes(b); !ok {
		return c, false
	}
	words, n := binary.Uvarint(b)
	if n <= 0 || words > 1<<31-1 {
		return c, false
	}
	c.words, c.entries = int(words), b[n:]
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

// cataloguer makes the search data of messages. It reuses memory from one to the next.
type cataloguer struct {
	known terms
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

func newCataloguer() *cataloguer {
	return &cataloguer{known: make(terms), slots: make(map[string]int)}
}

// index returns what finds a message.
func (c *cataloguer) index(m *chat.Message) indexed {
	text := searchText(m.Data)
	words := c.sort(text)
	return indexed{text: text, terms: c.termsOf(m.ChatID), card: c.cardOf(m, words)}
}

// sort finds the terms of a text, in order, and returns how many words it has.
func (c *cataloguer) sort(text string) int {
	clear(c.slots)
	c.terms, c.next = c.terms[:0], c.next[:0]
	words := int32(0)
	eachWord(text, func(start, end int) {
		term := c.known.of(text[start:end])
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

// termsOf returns the terms that were found, with spaces between and around them.
func (c *cataloguer) termsOf(chatID string) string {
	chatTerm := ChatTerm(chatID)
	size := len(chatTerm) + 2
	for _, t := range c.terms {
		size += len(t.term) + 1
	}
	var b strings.Builder
	if size > mostTerms {
		b.WriteString(" " + chatTerm + " " + ManyTerms + " ")
		return b.String()
	}
	b.Grow(size)
	b.WriteString(" " + chatTerm + " ")
	for _, t := range c.terms {
		b.WriteString(t.term)
		b.WriteByte(' ')
	}
	return b.String()
}

// cardOf returns the card of a message whose terms were found.
func (c *cataloguer) cardOf(m *chat.Message, words int) []byte {
	head := func(kind byte) {
		c.card = append(c.card[:0], kind)
		c.card = binary.AppendVarint(c.card, m.CreatedAt)
		c.card = append(binary.AppendUvarint(c.card, uint64(len(m.ID))), m.ID...)
		c.card = append(binary.AppendUvarint(c.card, uint64(len(m.Name))), m.Name...)
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
