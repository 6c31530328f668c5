package archive

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deeply values may be nested.
const maxDepth = 512

// stringEnd returns the place after the string that begins at i, or the end of
// the bytes when it does not end.
func stringEnd(b []byte, i int) int {
	i++
	quote := -1
	for i < len(b) {
		if quote < i {
			n := bytes.IndexByte(b[i:], '"')
			if n < 0 {
				return len(b)
			}
			quote = i + n
		}
		n := bytes.IndexByte(b[i:quote], '\\')
		if n < 0 {
			return quote + 1
		}
		i += n + 2
	}
	return len(b)
}

// valueEnd returns the place after the value that begins at i.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		depth := 0
		for ; i < len(b); i++ {
			switch b[i] {
			case '"':
				i = stringEnd(b, i) - 1
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

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// member is a member of an object.
type member struct {
	// Key is the key as it reads, Quoted as it is written.
	Key    string
	Quoted []byte
	Value  []byte
}

// members yields the members of an object, nothing for another value.
func members(raw []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := skipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		for i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '"'; i = skipSpace(raw, i+1) {
			var m member
			end := stringEnd(raw, i)
			m.Quoted = raw[i:end:end]
			m.Key = keyText(m.Quoted)
			i = skipSpace(raw, end)
			if i >= len(raw) || raw[i] != ':' {
				return
			}
			i = skipSpace(raw, i+1)
			end = valueEnd(raw, i)
			m.Value = raw[i:end:end]
			if !yield(m) {
				return
			}
			if i = skipSpace(raw, end); i >= len(raw) || raw[i] != ',' {
				return
			}
		}
	}
}

// keyText returns what a key reads. Keys that formats know cost no memory.
func keyText(quoted []byte) string {
	if len(quoted) < 2 {
		return ""
	}
	inner := quoted[1 : len(quoted)-1]
	if known, ok := knownKeys[string(inner)]; ok {
		return known
	}
	s, _ := text(quoted)
	return s
}

// elements yields the elements of an array, nothing for another value.
func elements(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(raw, 0)
		if i >= len(raw) || raw[i] != '[' {
			return
		}
		i = skipSpace(raw, i+1)
		for i < len(raw) && raw[i] != ']' {
			end := valueEnd(raw, i)
			if end == i || !yield(raw[i:end:end]) {
				return
			}
			if i = skipSpace(raw, end); i >= len(raw) || raw[i] != ',' {
				return
			}
			i = skipSpace(raw, i+1)
		}
	}
}

// get returns the member of an object with a key, nil if there is none.
func get(raw []byte, key string) []byte {
	for m := range members(raw) {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

func isNull(raw []byte) bool   { return len(raw) == 0 || raw[0] == 'n' }
func isTrue(raw []byte) bool   { return len(raw) > 0 && raw[0] == 't' }
func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
func isArray(raw []byte) bool  { return len(raw) > 0 && raw[0] == '[' }
func isString(raw []byte) bool { return len(raw) > 0 && raw[0] == '"' }

// text returns what a string value reads, with U+FFFD for what is not text. It
// reports false for another value, whose text is empty.
func text(raw []byte) (string, bool) {
	if !isString(raw) {
		return "", false
	}
	b, _ := unquote(raw)
	return strings.ToValidUTF8(string(b), "\uFFFD"), true
}

// str is text for callers to whom no string is the empty one.
func str(raw []byte) string {
	s, _ := text(raw)
	return s
}

// textBody returns a string as a body of text, and anything else, strings that are
// not whole Unicode included, as the JSON that it is.
func textBody(raw []byte) (body []byte, mediaType string) {
	if isString(raw) {
		if b, exact := unquote(raw); exact {
			return b, typeText
		}
	}
	return raw, typeJSON
}

// unquote returns what a string value reads. It is not exact when it has an escape
// for half a character, which becomes U+FFFD. The bytes may be the value's own.
func unquote(raw []byte) (b []byte, exact bool) {
	if len(raw) < 2 {
		return nil, false
	}
	inner := raw[1 : len(raw)-1 : len(raw)-1]
	next := bytes.IndexByte(inner, '\\')
	if next < 0 {
		return inner, true
	}
	out := make([]byte, 0, len(inner))
	exact = true
	for next >= 0 && next+1 < len(inner) {
		out = append(out, inner[:next]...)
		c := inner[next+1]
		inner = inner[next+2:]
		switch c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r := hex4(inner)
			if r < 0 {
				return nil, false
			}
			inner = inner[4:]
			if utf16.IsSurrogate(r) {
				var low rune = -1
				if len(inner) >= 6 && inner[0] == '\\' && inner[1] == 'u' {
					low = hex4(inner[2:])
				}
				if whole := utf16.DecodeRune(r, low); low >= 0 && whole != utf8.RuneError {
					r, inner = whole, inner[6:]
				} else {
					r, exact = utf8.RuneError, false
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
		next = bytes.IndexByte(inner, '\\')
	}
	return append(out, inner...), exact
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

// jsonObject puts an object together from members.
type jsonObject struct{ buf []byte }

// add adds a member as another object had it.
func (o *jsonObject) add(m member) { o.addRaw(m.Quoted, m.Value) }

// set adds a member with a value that is JSON.
func (o *jsonObject) set(key string, value []byte) {
	quoted, _ := json.Marshal(key)
	o.addRaw(quoted, value)
}

// setText adds a member with a text, unless it is empty.
func (o *jsonObject) setText(key, value string) {
	if value != "" {
		quoted, _ := json.Marshal(value)
		o.set(key, quoted)
	}
}

func (o *jsonObject) addRaw(quoted, value []byte) {
	if o.buf == nil {
		o.buf = make([]byte, 0, len(quoted)+len(value)+64)
	}
	lead := byte(',')
	if len(o.buf) == 0 {
		lead = '{'
	}
	o.buf = append(append(append(append(o.buf, lead), quoted...), ':'), value...)
}

// bytes returns the object, nil when it has no members.
func (o *jsonObject) bytes() []byte {
	if len(o.buf) == 0 {
		return nil
	}
	b := append(o.buf, '}')
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return b
}

var earliest, latest = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)

// parseTime returns the time that a value tells: as text, or as a number of
// seconds, milliseconds, microseconds or nanoseconds since 1970, which their size
// tells apart. Anything else is the zero time.
func parseTime(raw []byte) time.Time {
	if isString(raw) {
		s := str(raw)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02"} {
			if t, err := time.Parse(layout, s); err == nil {
				return inRange(t)
			}
		}
		raw = []byte(s)
	}
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return time.Time{}
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n == 0 || math.Abs(n) > 1e19 {
		return time.Time{}
	}
	for size := math.Abs(n); size > 1e11; size /= 1000 {
		n /= 1000
	}
	return inRange(time.UnixMilli(int64(math.Round(n * 1000))))
}

// inRange returns the time with the precision that is kept, the zero time for one
// that calendars do not have.
func inRange(t time.Time) time.Time {
	if t.Before(earliest) || t.After(latest) {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
