package content

import (
	"encoding/hex"
	"fmt"
	"unicode/utf8"
)

// quotedLen limits the length of invalid text in an error.
const quotedLen = 80

// ParseError is returned for text that cannot be parsed.
type ParseError struct {
	What string // what was expected, such as "content id"
	Text string // the text, truncated if it is long
}

func (e *ParseError) Error() string { return fmt.Sprintf("malformed %s %q", e.What, e.Text) }

func newParseError(what, text string) *ParseError {
	if len(text) > quotedLen {
		end := quotedLen
		for end > quotedLen-utf8.UTFMax && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return &ParseError{What: what, Text: text}
}

func parseHash(what, s string) (sum [32]byte, err error) {
	if len(s) != hex.EncodedLen(len(sum)) {
		return sum, newParseError(what, s)
	}
	if _, err := hex.Decode(sum[:], []byte(s)); err != nil {
		return [32]byte{}, newParseError(what, s)
	}
	return sum, nil
}
