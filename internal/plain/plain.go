// Package plain makes text safe to display: no character in it controls a terminal, reorders the text around it, or
// is invisible.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Characters without width that are part of ordinary writing: in Persian and Indic words, and in emoji sequences.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// Hidden reports whether a terminal obeys a character or does not display it: controls, formats such as direction
// marks and characters without width, and separators of lines and paragraphs. Newline and tab are not hidden.
func Hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Text returns a text without hidden characters: controls become their pictures, others U+FFFD, which also replaces
// bytes that are not UTF-8.
func Text(text string) string { return string(replace([]byte(text), Picture)) }

// Line returns a text as one line, clean, with its white space reduced to single spaces.
func Line(text string) string {
	// A line displays a few hundred characters at most.
	const enough = 4096
	if len(text) > enough {
		cut := enough
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return Text(strings.Join(strings.Fields(text), " "))
}

// JSON returns a JSON document with hidden characters escaped, so that the values of its strings do not change.
func JSON(doc []byte) []byte { return replace(doc, Escape) }

// Picture returns the visible substitute for a hidden character.
func Picture(r rune) string {
	switch {
	case r < ' ':
		return string('\u2400' + r)
	case r == 0x7f:
		return "\u2421"
	}
	return "\ufffd"
}

// Escape returns a character as a JSON escape.
func Escape(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// replace replaces hidden characters, and bytes that are not UTF-8.
func replace(text []byte, with func(rune) string) []byte {
	i := 0
	for i < len(text) {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		if Hidden(r) || r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	if i == len(text) {
		return text
	}
	clean := append(make([]byte, 0, len(text)+64), text[:i]...)
	for i < len(text) {
		r, size := utf8.DecodeRune(text[i:])
		if Hidden(r) || r == utf8.RuneError && size == 1 {
			clean = append(clean, with(r)...)
		} else {
			clean = append(clean, text[i:i+size]...)
		}
		i += size
	}
	return clean
}
