package form

import (
	"bytes"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// style is a way to escape the texts of JSON strings.
type style struct {
	ascii    bool   // escapes what is not ASCII
	upper    bool   // writes hexadecimal digits in upper case
	lines    bool   // escapes the line separators U+2028 and U+2029
	escaped  string // characters that are escaped numerically without need
	slash    bool   // writes \/
	longQuot bool   // escapes the quote numerically
}

// styles are tried in this order. Forms on disk contain their indexes: only append.
var styles = [...]style{
	{},                              // JSON.stringify, serde, Python without ensure_ascii
	{lines: true, escaped: "<>&"},   // Go
	{lines: true},                   // Go without HTML escapes
	{ascii: true},                   // Python
	{ascii: true, slash: true},      // PHP
	{lines: true, slash: true},      // PHP with JSON_UNESCAPED_UNICODE
	{ascii: true, upper: true},      // Jackson's ESCAPE_NON_ASCII
	{lines: true, escaped: "<>&='"}, // Gson
	{ascii: true, upper: true, escaped: "<>&'+`\x7f", longQuot: true}, // System.Text.Json
}

// quote appends a text as a JSON string.
func (s *style) quote(dst, text []byte) []byte {
	dst = append(dst, '"')
	for len(text) > 0 {
		n := s.run(text)
		dst = append(dst, text[:n]...)
		if text = text[n:]; len(text) == 0 {
			break
		}
		var size int
		dst, size = s.escape(dst, text)
		text = text[size:]
	}
	return append(dst, '"')
}

// begins returns the size of a text as a JSON string if json begins with that string, or else 0.
func (s *style) begins(json, text []byte) int {
	if len(json) == 0 || json[0] != '"' {
		return 0
	}
	var escaped [12]byte
	at := 1
	for len(text) > 0 {
		n := s.run(text)
		if len(json)-at < n || !bytes.Equal(json[at:at+n], text[:n]) {
			return 0
		}
		at += n
		if text = text[n:]; len(text) == 0 {
			break
		}
		escapes, size := s.escape(escaped[:0], text)
		if !bytes.HasPrefix(json[at:], escapes) {
			return 0
		}
		at, text = at+len(escapes), text[size:]
	}
	if at == len(json) || json[at] != '"' {
		return 0
	}
	return at + 1
}

// run returns how many bytes at the start of a text are never escaped.
func (s *style) run(text []byte) int {
	n := rawjson.Plain(text)
	if !s.ascii && !s.lines && !s.slash && s.escaped == "" {
		return n
	}
	for i, c := range text[:n] {
		if !s.plain(c) {
			return i
		}
	}
	return n
}

// plain reports whether a byte is never escaped, of those that need not be in every style.
func (s *style) plain(c byte) bool {
	switch {
	case c == '/':
		return !s.slash
	case c >= utf8.RuneSelf:
		return !s.ascii && (c != 0xe2 || !s.lines)
	}
	return len(s.escaped) == 0 || bytes.IndexByte([]byte(s.escaped), c) < 0
}

// escape appends the first character of a text, which may need escaping, and returns its
// size in bytes.
func (s *style) escape(dst, text []byte) ([]byte, int) {
	switch c := text[0]; c {
	case '"':
		if s.longQuot {
			return s.number(dst, '"'), 1
		}
		return append(dst, '\\', c), 1
	case '\\', '/':
		return append(dst, '\\', c), 1
	case '\n':
		return append(dst, `\n`...), 1
	case '\r':
		return append(dst, `\r`...), 1
	case '\t':
		return append(dst, `\t`...), 1
	case '\b':
		return append(dst, `\b`...), 1
	case '\f':
		return append(dst, `\f`...), 1
	}
	r, size := utf8.DecodeRune(text)
	switch {
	case r == utf8.RuneError && size == 1, !s.ascii && r >= utf8.RuneSelf && r != '\u2028' && r != '\u2029':
		return append(dst, text[:size]...), size
	case r > 0xffff:
		r -= 0x10000
		return s.number(s.number(dst, 0xd800+r>>10), 0xdc00+r&0x3ff), size
	}
	return s.number(dst, r), size
}

// number appends a numeric escape.
func (s *style) number(dst []byte, r rune) []byte {
	digits := "0123456789abcdef"
	if s.upper {
		digits = "0123456789ABCDEF"
	}
	return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
