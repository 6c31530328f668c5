package message

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// shape describes the values that an API accepts.
type shape struct {
	// starts are the possible first bytes of a value; '1' stands for a number.
	starts string
	// accepts, when not nil, is a further condition.
	accepts func(raw []byte) bool
	// element is the shape of list elements; least is their minimum number.
	element *shape
	least   int
	// members are the members of an object; need are the required ones. An open object may have other members. each
	// is the shape of members with any key.
	members map[string]*shape
	need    []string
	open    bool
	each    *shape
	// by are the shapes of an object, selected by the text of the member key.
	key string
	by  map[string]*shape
	// or is an alternative shape.
	or *shape
}

var (
	aText   = &shape{starts: `"`}
	aNumber = &shape{starts: "1"}
	aBool   = &shape{starts: "tf"}
	// anInteger fits in 64 bits, as in the APIs' own types.
	anInteger = &shape{starts: "1", accepts: func(raw []byte) bool {
		_, err := strconv.ParseInt(string(raw), 10, 64)
		return err == nil
	}}
	anything = &shape{starts: `"{[1tfn`}
	anObject = &shape{starts: "{", open: true}
	notBlank = textThat(func(s string) bool { return !isBlank(s) })
	notEmpty = textThat(func(s string) bool { return s != "" })
)

func textThat(accepts func(string) bool) *shape {
	return &shape{starts: `"`, accepts: func(raw []byte) bool { return accepts(rawjson.Str(raw)) }}
}

func oneOf(texts ...string) *shape {
	return textThat(func(s string) bool { return slices.Contains(texts, s) })
}

func listOf(least int, element *shape) *shape {
	return &shape{starts: "[", element: element, least: least}
}

func mapOf(each *shape) *shape { return &shape{starts: "{", each: each} }

type members = map[string]*shape

// objectOf is an object with members; need lists the required ones.
func objectOf(need []string, m members) *shape { return &shape{starts: "{", members: m, need: need} }

func typed(key string, by map[string]*shape) *shape { return &shape{starts: "{", key: key, by: by} }

func (s *shape) orNull() *shape {
	c := *s
	c.starts += "n"
	return &c
}

func (s *shape) orElse(other *shape) *shape {
	c := *s
	c.or = other
	return &c
}

// take returns a value that the API accepts: raw, or raw without members that the API does not know. It appends the
// keys of these to left. It returns false if there is no such value.
func (s *shape) take(raw []byte, left *[]string) ([]byte, bool) {
	n := len(*left)
	out, ok := s.takeThis(raw, left)
	if !ok && s.or != nil {
		*left = (*left)[:n]
		return s.or.take(raw, left)
	}
	return out, ok
}

func (s *shape) takeThis(raw []byte, left *[]string) ([]byte, bool) {
	if len(raw) == 0 {
		return nil, false
	}
	c := raw[0]
	if c == '-' || '0' <= c && c <= '9' {
		c = '1'
	}
	if !slices.Contains([]byte(s.starts), c) {
		return nil, false
	}
	if c == 'n' {
		return raw, true
	}
	if s.accepts != nil && !s.accepts(raw) {
		return nil, false
	}
	switch {
	case s.element != nil && c == '[':
		return s.takeList(raw, left)
	case s.by != nil && c == '{':
		selected := s.by[rawjson.Str(rawjson.Last(raw, s.key))]
		if selected == nil {
			return nil, false
		}
		return selected.take(raw, left)
	case (s.members != nil || s.each != nil) && c == '{':
		return s.takeObject(raw, left)
	}
	return raw, true
}

func (s *shape) takeList(raw []byte, left *[]string) ([]byte, bool) {
	n, copied := 0, 0
	var out []byte
	for at, e := range rawjson.ElementsAt(raw) {
		n++
		element, ok := s.element.take(e, left)
		if !ok {
			return nil, false
		}
		if len(element) != len(e) {
			out = append(append(out, raw[copied:at]...), element...)
			copied = at + len(e)
		}
	}
	if n < s.least {
		return nil, false
	}
	if copied == 0 {
		return raw, true
	}
	return append(out, raw[copied:]...), true
}

func (s *shape) takeObject(raw []byte, left *[]string) ([]byte, bool) {
	seen := make(map[string]bool)
	out := raw
	grown := 0 // by how many bytes out is shorter than raw so far
	dropped := make(map[string]bool)
	for m := range rawjson.Members(raw) {
		if seen[m.Key] {
			return nil, false // readers treat duplicate keys differently
		}
		seen[m.Key] = true
		member := s.members[m.Key]
		if member == nil {
			member = s.each
		}
		if member == nil {
			if !s.open {
				dropped[m.Key] = true
			}
			continue
		}
		value, ok := member.take(m.Value, left)
		if !ok {
			if rawjson.IsNull(m.Value) && !slices.Contains(s.need, m.Key) {
				dropped[m.Key] = true
				continue
			}
			return nil, false
		}
		if len(value) != len(m.Value) {
			at := m.At - grown
			out = slices.Concat(out[:at], value, out[at+len(m.Value):])
			grown += len(m.Value) - len(value)
		}
	}
	for _, key := range s.need {
		if !seen[key] {
			return nil, false
		}
	}
	if len(dropped) == 0 {
		return out, true
	}
	*left = slices.AppendSeq(*left, maps.Keys(dropped))
	return rawjson.RemoveFunc(out, func(key string) bool { return dropped[key] }), true
}

func isBlank(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }

func notPlaceholder(raw []byte) bool { return !isPlaceholder(rawjson.Str(raw)) }

// never is the shape of a member that is not allowed.
var never = &shape{}

func isName(s string, longest int) bool { return len(s) <= longest && plainName.MatchString(s) }

var plainName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
