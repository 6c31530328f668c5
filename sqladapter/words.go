package sqladapter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A word is a stem and where it stands in the text.
type word struct {
	term       string
	start, end int
}

// longestTerm is the most bytes of a term; the rest of a longer one is cut off.
const longestTerm = 128

// wordsOf returns the words of a text: runs of letters, digits and marks, lower
// case, without diacritics, as stems. A character of a script that does not part
// its words is a word. All databases are given words from here, so that they find
// the same.
func wordsOf(text string) []word { return wordsBy(text, termOf) }

// wordsBy is wordsOf with a way to find terms.
func wordsBy(text string, termOf func(string) string) []word {
	var words []word
	eachWord(text, func(start, end int) { words = append(words, word{termOf(text[start:end]), start, end}) })
	return words
}

// eachWord calls a function with the beginning and end of each word.
func eachWord(text string, found func(start, end int)) {
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

// termOf returns what a word is found by.
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
	if len(word) > longestTerm {
		word = shortenedTo(word, longestTerm)
	}
	return word
}

// folded returns a character in lower case, nothing for a diacritic. What is written
// into conditions has no marks of any language.
func folded(r rune) rune {
	if 0x300 <= r && r <= 0x36f || r < utf8.RuneSelf && !isWord(r) {
		return -1
	}
	return unicode.ToLower(r)
}

// ManyTerms is the term of messages with more terms than are kept: they may have any.
const ManyTerms = "manyterms0b6f1c"

// mostTerms is the most bytes of terms that are kept of a message.
const mostTerms = 512 << 10

// ChatTerm is the term that all messages of a chat have.
func ChatTerm(chatID string) string {
	sum := sha256.Sum256([]byte(chatID))
	return "chat" + hex.EncodeToString(sum[:12])
}
