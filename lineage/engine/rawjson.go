package engine

import (
	"encoding/json"
	"strings"
)

// The functions here walk JSON that is known to be valid. They find where
// things are instead of decoding them, so that what nobody edits keeps its bytes.

// extent is where a value lies in its document.
type extent struct{ from, to int }

// rawMember is one member of an object.
type rawMember struct {
	name  string
	start int // of the name's quote
	value extent
}

// skipSpace returns the index of the first byte at or after i that is not space.
func skipSpace(s string, i int) int {
	for i < len(s) && strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		i++
	}
	return i
}

// skipString returns the index after the string whose quote is at i.
func skipString(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}

// skipValue returns the index after the value that starts at i.
func skipValue(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '"':
			i = skipString(s, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			i++
			continue
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// rawMembers returns the members of the object s, and whether s is an object.
func rawMembers(s string) ([]rawMember, bool) {
	i := skipSpace(s, 0)
	if i == len(s) || s[i] != '{' {
		return nil, false
	}
	var members []rawMember
	for i = skipSpace(s, i+1); i < len(s) && s[i] != '}'; i = skipSpace(s, i) {
		if s[i] == ',' {
			i++
			continue
		}
		end := skipString(s, i)
		m := rawMember{name: unquote(s[i:end]), start: i}
		i = skipSpace(s, skipSpace(s, end)+1) // past the colon
		m.value = extent{i, skipValue(s, i)}
		i = m.value.to
		members = append(members, m)
	}
	return members, true
}

// rawElements returns where the elements of the array s lie, and whether s is
// an array.
func rawElements(s string) ([]extent, bool) {
	i := skipSpace(s, 0)
	if i == len(s) || s[i] != '[' {
		return nil, false
	}
	var elements []extent
	for i = skipSpace(s, i+1); i < len(s) && s[i] != ']'; i = skipSpace(s, i) {
		if s[i] == ',' {
			i++
			continue
		}
		e := extent{i, skipValue(s, i)}
		i = e.to
		elements = append(elements, e)
	}
	return elements, true
}

// lastMember returns the value that the object s has under name: of members
// that share a name, the last one counts.
func lastMember(s string, members []rawMember, name string) (string, bool) {
	for i := len(members) - 1; i >= 0; i-- {
		if m := members[i]; m.name == name {
			return s[m.value.from:m.value.to], true
		}
	}
	return "", false
}

// setMember returns the object s with value under name, everything else as it
// was. A new member comes last.
func setMember(s, name, value string) string {
	members, _ := rawMembers(s)
	for i := len(members) - 1; i >= 0; i-- {
		if m := members[i]; m.name == name {
			return s[:m.value.from] + value + s[m.value.to:]
		}
	}
	member := quote(name) + ":" + value
	if len(members) == 0 {
		open := strings.IndexByte(s, '{') + 1
		return s[:open] + member + s[open:]
	}
	end := members[len(members)-1].value.to
	return s[:end] + "," + member + s[end:]
}

// removeMember returns the object s without any member of that name.
func removeMember(s, name string) string {
	for {
		members, _ := rawMembers(s)
		at := -1
		for i, m := range members {
			if m.name == name {
				at = i
			}
		}
		switch {
		case at < 0:
			return s
		case at > 0:
			s = s[:members[at-1].value.to] + s[members[at].value.to:]
		case len(members) > 1:
			s = s[:members[0].start] + s[members[1].start:]
		default:
			s = s[:members[0].start] + s[members[0].value.to:]
		}
	}
}

// unquote returns the text of a JSON string.
func unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return strings.ToValidUTF8(s[1:len(s)-1], "\uFFFD")
	}
	var text string
	if json.Unmarshal([]byte(s), &text) != nil {
		return ""
	}
	return text
}

// quote returns text as a JSON string, in which only what must be is escaped.
func quote(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// eachString calls yield with the text of every string in s that is a value,
// not a name. It finds none in what is not JSON.
func eachString(s string, yield func(string)) {
	if !json.Valid([]byte(s)) {
		return
	}
	for i := 0; i < len(s); {
		if s[i] != '"' {
			i++
			continue
		}
		end := skipString(s, i)
		if next := skipSpace(s, end); next == len(s) || s[next] != ':' {
			yield(unquote(s[i:end]))
		}
		i = end
	}
}
