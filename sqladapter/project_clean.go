package sqladapter

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// TextLimited is a Dialect whose databases cannot store every text.
type TextLimited interface {
	// NoNUL reports whether texts and JSON must not contain NUL, nor JSON unpaired surrogates.
	NoNUL() bool
}

func (db *DB) noNUL() bool {
	l, ok := db.dialect.(TextLimited)
	return ok && l.NoNUL()
}

// clean returns a text that the database can store: with U+FFFD for invalid UTF-8 and, in some
// databases, for NUL.
func (db *DB) clean(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, 0) >= 0 && db.noNUL() {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return s
}

// bytesText is clean for JSON in a text column, which preserves bytes; null for nil.
func (db *DB) bytesText(b []byte) any {
	if b == nil {
		return nil
	}
	return db.clean(string(b))
}

// cleanJSON is clean for JSON in a JSON column.
func (db *DB) cleanJSON(b json.RawMessage) json.RawMessage {
	if b == nil {
		return nil
	}
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	if !db.noNUL() || !bytes.Contains(b, []byte(`\u`)) {
		return b
	}
	return cleanEscapes(b)
}

// cleanEscapes replaces \u0000 and unpaired surrogates.
func cleanEscapes(b []byte) []byte {
	const replacement = `\ufffd`
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] != '\\' || i+1 >= len(b) {
			out = append(out, b[i])
			i++
			continue
		}
		unit, ok := escape(b[i:])
		switch {
		case !ok:
			out = append(out, b[i:i+2]...)
			i += 2
		case unit == 0 || unit >= 0xdc00 && unit <= 0xdfff:
			out = append(out, replacement...)
			i += 6
		case unit >= 0xd800 && unit <= 0xdbff:
			low, ok := escape(b[i+6:])
			if ok && low >= 0xdc00 && low <= 0xdfff {
				out = append(out, b[i:i+12]...)
				i += 12
				continue
			}
			out = append(out, replacement...)
			i += 6
		default:
			out = append(out, b[i:i+6]...)
			i += 6
		}
	}
	return out
}

// escape returns the code unit of the \uXXXX at the start of b.
func escape(b []byte) (unit int, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		unit <<= 4
		switch {
		case c >= '0' && c <= '9':
			unit += int(c - '0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			unit += int(c|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return unit, true
}
