// Package query implements searches: the query language, the words of texts,
// matching, ranking and snippets. It stores nothing: indexes belong to its callers.
package query

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A Word is a stem and its position in the text.
type Word struct {
	Term       string
	Start, End int
}

// maxTerm is the maximum size of a term in bytes; a longer one is truncated.
const maxTerm = 128

// Words returns the words of a text: runs of letters, digits and marks, lower case,
// without diacritics, as stems. In scripts without spaces between words, each
// character is a word. All databases index these words, so that they find the same.
func Words(text string) []Word { return wordsBy(text, termOf) }

// wordsBy is Words with a given termOf.
func wordsBy(text string, termOf func(string) string) []Word {
	var words []Word
	EachWord(text, func(start, end int) { words = append(words, Word{termOf(text[start:end]), start, end}) })
	return words
}

// EachWord calls a function with the start and end of each word.
func EachWord(text string, found func(start, end int)) {
	start := -1
	end := func(at int) {
		if start >= 0 {
			found(start, at)
			start = -1
		}
	}
	for at, r := range text {
		switch {
		case r < utf8.RuneSelf:
			if !isWord(r) {
				end(at)
			} else if start < 0 {
				start = at
			}
		case isAlone(r):
			end(at)
			found(at, at+utf8.RuneLen(r))
		case isWord(r) || start >= 0 && unicode.IsMark(r):
			if start < 0 {
				start = at
			}
		default:
			end(at)
		}
	}
	end(len(text))
}

func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.Co, r))
}

func isAlone(r rune) bool {
	return r >= 0x2e80 && (unicode.Is(unicode.Han, r) || unicode.Is(unicode.Hiragana, r) || unicode.Is(unicode.Katakana, r))
}

// termOf returns the term of a word.
func termOf(word string) string {
	plain := true
	for i := range len(word) {
		if word[i] >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if plain {
		word = strings.ToLower(word)
	} else {
		word = strings.Map(folded, norm.NFD.String(word))
	}
	word = stem(word)
	if len(word) > maxTerm {
		word = Shorten(word, maxTerm)
	}
	return word
}

// folded returns a character in lower case, or -1 for a diacritic. Terms in
// conditions contain no characters with a special meaning.
func folded(r rune) rune {
	if 0x300 <= r && r <= 0x36f || r < utf8.RuneSelf && !isWord(r) {
		return -1
	}
	return unicode.ToLower(r)
}

// Shorten returns the first bytes of a text, without an incomplete character at the
// end.
func Shorten(text string, size int) string { return strings.ToValidUTF8(text[:size], "") }

// Terms caches the terms of words.
type Terms map[string]string

// Limits of the cache: number of words, and size of a word in bytes.
const maxCached, maxCachedWord = 20_000, 32

// Of returns the term of a word.
func (t Terms) Of(word string) string {
	if term, ok := t[word]; ok {
		return term
	}
	term := termOf(word)
	if len(t) < maxCached && len(word) <= maxCachedWord {
		t[strings.Clone(word)] = strings.Clone(term)
	}
	return term
}
