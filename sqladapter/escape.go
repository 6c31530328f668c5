package sqladapter

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Some databases do not store NUL in texts, nor \u0000 and unpaired surrogates in JSON. There these are
// written as the noncharacter U+FDD0 and the four hexadecimal digits of the code unit, and so is U+FDD0
// itself: so each text has one written form, and no two have the same. JSON stays JSON, which other
// programs can read.

// TextLimited is a Dialect whose databases cannot store every text.
type TextLimited interface {
	// NoNUL reports whether texts and JSON must not contain NUL, nor JSON unpaired surrogates.
	NoNUL() bool
}

const (
	escapeMark    = "\uFDD0"
	escapedNUL    = escapeMark + "0000"
	escapedMark   = escapeMark + "fdd0"
	escapedLength = len(escapedNUL)
)

func escapes(d Dialect) bool {
	l, ok := d.(TextLimited)
	return ok && l.NoNUL()
}

var (
	textEscaper   = strings.NewReplacer("\x00", escapedNUL, escapeMark, escapedMark)
	textUnescaper = strings.NewReplacer(escapedNUL, "\x00", escapedMark, escapeMark)
)

func escapeText(s string) string {
	if strings.IndexByte(s, 0) < 0 && !strings.Contains(s, escapeMark) {
		return s
	}
	return textEscaper.Replace(s)
}

func unescapeText(s string) string {
	if !strings.Contains(s, escapeMark) {
		return s
	}
	return textUnescaper.Replace(s)
}

// escapeJSON is escapeText for the strings of a JSON document.
func escapeJSON(s string) string {
	if !strings.Contains(s, `\u`) && !strings.Contains(s, escapeMark) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 64)
	for i := 0; i < len(s); {
		unit, isEscape := escape(s[i:])
		switch {
		case isEscape && unit >= 0xd800 && unit <= 0xdbff && isLow(s[i+6:]):
			b.WriteString(s[i : i+12])
			i += 12
		case isEscape && (unit == 0 || unit == 0xfdd0 || unit >= 0xd800 && unit <= 0xdfff):
			b.WriteString(escapeMark + strings.ToLower(s[i+2:i+6]))
			i += 6
		case s[i] == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i += 2
		case strings.HasPrefix(s[i:], escapeMark):
			b.WriteString(escapedMark)
			i += len(escapeMark)
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return b.String()
}

// unescapeJSON is the inverse of escapeJSON, for documents in which U+FDD0 is not written with a backslash.
func unescapeJSON(s string) string {
	at := strings.Index(s, escapeMark)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for ; at >= 0; at = strings.Index(s, escapeMark) {
		b.WriteString(s[:at])
		s = s[at:]
		unit, ok := -1, false
		if len(s) >= escapedLength {
			digits := s[len(escapeMark):escapedLength]
			unit, ok = escape(`\u` + digits)
			ok = ok && digits == strings.ToLower(digits)
		}
		switch {
		case ok && (unit == 0 || unit >= 0xd800 && unit <= 0xdfff):
			b.WriteString(`\u` + s[len(escapeMark):escapedLength])
			s = s[escapedLength:]
		case ok && unit == 0xfdd0:
			b.WriteString(escapeMark)
			s = s[escapedLength:]
		default: // another program wrote it
			b.WriteString(escapeMark)
			s = s[len(escapeMark):]
		}
	}
	b.WriteString(s)
	return b.String()
}

// escape returns the code unit of the \uXXXX at the start of s.
func escape(s string) (unit int, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range []byte(s[2:6]) {
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

// isLow reports whether a low surrogate is at the start of s.
func isLow(s string) bool {
	unit, ok := escape(s)
	return ok && unit >= 0xdc00 && unit <= 0xdfff
}

// Rows are the rows of a query, with texts as they were before they were escaped.
type Rows struct {
	*sql.Rows
	escaped bool
}

// Scan reads the columns of a row. JSON is read into a json.RawMessage.
func (r *Rows) Scan(into ...any) error {
	for i, v := range into {
		if v, ok := v.(*json.RawMessage); ok {
			into[i] = &document{v, r.escaped}
		}
	}
	if err := r.Rows.Scan(into...); err != nil || !r.escaped {
		return err
	}
	for _, v := range into {
		switch v := v.(type) {
		case *string:
			*v = unescapeText(*v)
		case *sql.NullString:
			v.String = unescapeText(v.String)
		case *any:
			if s, ok := (*v).(string); ok {
				*v = unescapeText(s)
			}
		}
	}
	return nil
}

// document scans JSON, nil for null.
type document struct {
	to      *json.RawMessage
	escaped bool
}

// Scan implements sql.Scanner.
func (d *document) Scan(from any) error {
	var text string
	switch from := from.(type) {
	case nil:
		*d.to = nil
		return nil
	case string:
		text = from
	case []byte:
		text = string(from)
	default:
		return fmt.Errorf("JSON of type %T", from)
	}
	if d.escaped {
		text = unescapeJSON(text)
	}
	*d.to = json.RawMessage(text)
	return nil
}

// clean returns a text with U+FFFD for what is not UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// cleanOptional is clean for a text that may be absent; null for nil.
func cleanOptional(s *string) any {
	if s == nil {
		return nil
	}
	return clean(*s)
}

// bytesText is clean for JSON in a text column, which preserves bytes; null for nil.
func bytesText(b []byte) any {
	if b == nil {
		return nil
	}
	return clean(string(b))
}

// cleanJSON is clean for JSON in a JSON column.
func cleanJSON(b json.RawMessage) json.RawMessage {
	if b == nil || utf8.Valid(b) {
		return b
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}
