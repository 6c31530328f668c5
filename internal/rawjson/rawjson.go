// Package rawjson finds the positions of values in a JSON document without decoding them,
// so that they keep their bytes. The input must be valid JSON: of anything else the
// functions return less, and never fail.
package rawjson

import (
	"bytes"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// StringEnd returns the position after the string that starts at i, or the end of the
// input if the string is not closed.
func StringEnd(b []byte, i int) int {
	i++
	for from := i; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slash := i // a quote after an odd number of backslashes belongs to the string
		for slash > from && b[slash-1] == '\\' {
			slash--
		}
		if (i-slash)%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}

// ValueEnd returns the position after the value that starts at i.
func ValueEnd(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return StringEnd(b, i)
	case '{', '[':
		depth := 0
		for ; i < len(b); i++ {
			switch b[i] {
			case '"':
				i = StringEnd(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(b)
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return i
		}
	}
	return len(b)
}

func SkipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// Member is a member of an object.
type Member struct {
	// Key is the decoded key, Quoted its JSON.
	Key    string
	Quoted []byte
	Value  []byte
	// KeyAt and At are the positions of the key and the value in the object.
	KeyAt, At int
}

// In returns the member, its key and its value, in the object that it is a member of.
func (m Member) In(object []byte) []byte {
	end := m.At + len(m.Value)
	return object[m.KeyAt:end:end]
}

// PartAt returns the value that begins at a position of a JSON text, or the member if this is its key.
func PartAt(raw []byte, at int) []byte {
	end := ValueEnd(raw, at)
	if colon := SkipSpace(raw, end); raw[at] == '"' && colon < len(raw) && raw[colon] == ':' {
		end = ValueEnd(raw, SkipSpace(raw, colon+1))
	}
	return raw[at:end:end]
}

// MemberOf reads a member that In returned.
func MemberOf(raw []byte) Member {
	var m Member
	end := StringEnd(raw, 0)
	m.Quoted = raw[:end:end]
	m.Key, m.At = KeyText(m.Quoted), min(SkipSpace(raw, SkipSpace(raw, end)+1), len(raw))
	m.Value = raw[m.At:]
	return m
}

// Members yields the members of an object, nothing for another value.
func Members(raw []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := SkipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		for i = SkipSpace(raw, i+1); i < len(raw) && raw[i] == '"'; i = SkipSpace(raw, i+1) {
			var m Member
			end := StringEnd(raw, i)
			m.Quoted = raw[i:end:end]
			m.Key, m.KeyAt = KeyText(m.Quoted), i
			i = SkipSpace(raw, end)
			if i >= len(raw) || raw[i] != ':' {
				return
			}
			i = SkipSpace(raw, i+1)
			end = ValueEnd(raw, i)
			m.Value, m.At = raw[i:end:end], i
			if !yield(m) {
				return
			}
			if i = SkipSpace(raw, end); i >= len(raw) || raw[i] != ',' {
				return
			}
		}
	}
}

// KeyText returns the decoded key. It does not allocate for the keys of known formats.
func KeyText(quoted []byte) string {
	if len(quoted) < 2 {
		return ""
	}
	inner := quoted[1 : len(quoted)-1]
	if known, ok := knownKeys[string(inner)]; ok {
		return known
	}
	s, _ := Text(quoted)
	return s
}

// Elements yields the elements of an array, nothing for another value.
func Elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, e := range ElementsAt(raw) {
			if !yield(e) {
				return
			}
		}
	}
}

// ElementsAt yields the elements of an array with their positions in the array.
func ElementsAt(raw []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		i := SkipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '[' {
			return
		}
		i = SkipSpace(raw, i+1)
		for i < len(raw) && raw[i] != ']' {
			end := ValueEnd(raw, i)
			if end == i || !yield(i, raw[i:end:end]) {
				return
			}
			if i = SkipSpace(raw, end); i >= len(raw) || raw[i] != ',' {
				return
			}
			i = SkipSpace(raw, i+1)
		}
	}
}

// Get returns the first value of a key in an object, nil if there is none.
func Get(raw []byte, key string) []byte {
	for m := range Members(raw) {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

func IsNull(raw []byte) bool   { return len(raw) == 0 || raw[0] == 'n' }
func IsTrue(raw []byte) bool   { return len(raw) > 0 && raw[0] == 't' }
func IsObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func IsArray(raw []byte) bool  { return len(raw) > 0 && raw[0] == '[' }
func IsString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// Text returns the text of a JSON string, with U+FFFD for each invalid byte, like
// encoding/json. It reports false for another value, whose text is empty.
func Text(raw []byte) (string, bool) {
	if !IsString(raw) {
		return "", false
	}
	b, _ := Unquote(raw)
	if !utf8.Valid(b) {
		return string([]rune(string(b))), true
	}
	return string(b), true
}

// Str is Text with the empty string for other values.
func Str(raw []byte) string {
	s, _ := Text(raw)
	return s
}

// Unquote returns the text of a JSON string. It is not exact if an escape is half of a
// surrogate pair, which becomes U+FFFD. The result may share the input's memory.
func Unquote(raw []byte) (b []byte, exact bool) {
	b, exact, _ = UnquoteAs(raw)
	return b, exact
}

// pairWith returns the character of a surrogate and of the escaped one with which rest begins, or utf8.RuneError if they are no
// pair.
func pairWith(high rune, rest []byte) rune {
	if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
		return utf8.RuneError
	}
	low := hex4(rest[2:])
	if low < 0 {
		return utf8.RuneError
	}
	return utf16.DecodeRune(high, low)
}

// UnquoteAs is Unquote, and also reports whether JSON.stringify escapes the text in the same way.
func UnquoteAs(raw []byte) (b []byte, exact, common bool) {
	if len(raw) < 2 {
		return nil, false, false
	}
	inner := raw[1 : len(raw)-1 : len(raw)-1]
	next := bytes.IndexByte(inner, '\\')
	if next < 0 {
		return inner, true, true
	}
	out := make([]byte, len(inner)) // an escape is at least as long as what it stands for
	n := 0
	exact, common = true, true
	for next >= 0 && next+1 < len(inner) {
		n += copy(out[n:], inner[:next])
		c := inner[next+1]
		inner = inner[next+2:]
		switch c {
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'u':
			r := hex4(inner)
			if r < 0 {
				return nil, false, false
			}
			common = common && isCommonEscape(inner[:4], r)
			inner = inner[4:]
			if utf16.IsSurrogate(r) {
				if whole := pairWith(r, inner); whole != utf8.RuneError {
					r, inner = whole, inner[6:]
				} else {
					r, exact = utf8.RuneError, false
				}
			}
			n += utf8.EncodeRune(out[n:], r)
			next = bytes.IndexByte(inner, '\\')
			continue
		default:
			common = common && (c == '"' || c == '\\')
		}
		out[n] = c
		n++
		next = bytes.IndexByte(inner, '\\')
	}
	n += copy(out[n:], inner)
	return out[:n:n], exact, common
}

// isCommonEscape reports whether JSON.stringify writes a character with these hexadecimal digits: a control character
// without a shorter escape, in lower case.
func isCommonEscape(digits []byte, r rune) bool {
	switch r {
	case '\n', '\t', '\r', '\b', '\f':
		return false
	}
	return r < ' ' && (digits[3] < 'A' || digits[3] > 'F')
}

func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
