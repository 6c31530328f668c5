package sqladapter

import (
	"strings"
)

// Some databases cannot store NUL in texts, nor \u0000 and unpaired surrogates in JSON. For these databases, such a
// character is written as the noncharacter U+FDD0 followed by the four hexadecimal digits of its code unit. U+FDD0
// itself is written in the same way, so that different texts have different written forms. JSON remains JSON that
// other programs can read.

const (
	escapeMark    = "\uFDD0"
	escapedNUL    = escapeMark + "0000"
	escapedMark   = escapeMark + "fdd0"
	escapedLength = len(escapedNUL)
)

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

// escapeJSON is like escapeText, for the strings of a JSON document.
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
		default: // written by another program
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
